"""What needs no AWS: the cost, what is remembered, from where ssh is let in, the rules between hosts."""

from __future__ import annotations

import http.server
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tunnel_lab.ec2 import cost, memory, origin
from tunnel_lab.ec2.rules import peer_rules
from tunnel_lab.errors import LabError

from .conftest import hosts

TRANSFER = {"bytes": 10e9, "seconds": 100.0}


def test_cost_is_the_sum_of_what_is_said() -> None:
    bound = cost.bound(hosts(), 115, TRANSFER)
    # two hours of both, each with 16 GB and an address
    server = 2 * (0.68 + 0.005 + 16 * 0.08 / 720)
    client = 2 * (0.768 + 0.005 + 16 * 0.088 / 720)
    transfer = (1.2 * 10 + 100 * 5 / 8) * 0.02
    assert bound["most_usd"] == pytest.approx(server + client + transfer)
    lines = bound["shown"].splitlines()
    assert lines[1].split()[:2] == ["server", f"${server:.2f}"]
    assert "c5.4xlarge in us-east-1, with 16 GB and an address $0.69 per hour" in lines[1]
    assert lines[3].startswith(
        f"  transfer      ${transfer:.2f}  at most 75 GB between the regions: 1.2 x 10.0 GB of known"
    )
    assert lines[4].startswith(f"  at most       ${server + client + transfer:.2f}  for 115 minutes, after which")


@pytest.mark.parametrize("changes", [{"aws_instance_type": "x9.mega"}, {"aws_region": "ap-south-2"}])
def test_what_is_not_known_is_said_to_be_unknown(changes: dict[str, str]) -> None:
    bound = cost.bound(hosts(**changes), 120, TRANSFER)
    assert bound["most_usd"] is None
    lines = bound["shown"].splitlines()
    assert lines[1].split()[1] == "unknown"
    assert lines[4].split()[2] == "unknown"
    assert lines[5].startswith("unknown: roles/provider_aws/prices.yml has no price for that type or region.")


@pytest.mark.parametrize(("minutes", "said"), [(60, False), (59, True)])
def test_run_that_is_longer_than_the_hosts_live_is_told_before(minutes: int, said: bool) -> None:
    shown = cost.bound(hosts(), minutes, {"bytes": 0, "seconds": 3600.0})["shown"]
    assert ("The hosts end before the run does: 60 minutes of transfer alone are planned." in shown) is said


def test_spot_is_bounded_by_the_price_on_demand() -> None:
    spot = cost.bound(hosts(aws_spot=True), 120, TRANSFER)
    assert spot["most_usd"] == cost.bound(hosts(), 120, TRANSFER)["most_usd"]
    assert "c5.4xlarge (spot: at most) in us-east-1" in spot["shown"]


def test_prices_are_those_of_whole_machines() -> None:
    """A size costs as its share of the machine: a figure that is off by a factor would be seen here."""
    for region, prices in cost.table().regions.items():
        assert {"c5.4xlarge", "t3.micro"} <= prices.instance_hour.keys(), region
        for family in ("c3", "c5", "c6i", "c7i", "m5", "t3"):
            sizes = {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "9xlarge": 18}
            known = {size: prices.instance_hour.get(f"{family}.{size}") for size in sizes}
            per_unit = [price / sizes[size] for size, price in known.items() if price]
            assert max(per_unit, default=1) / min(per_unit, default=1) < 1.01, (region, family)


def test_wrong_price_table_names_file_and_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices.yml").write_text("date: today\nregions: {}\n")
    monkeypatch.setattr(cost, "FILE", tmp_path / "prices.yml")
    with pytest.raises(LabError, match=r"prices.yml: source: Field required"):
        cost.table()


def test_end_is_kept_for_as_long_as_a_host_lives(tmp_path: Path) -> None:
    changed, first = memory.remember(tmp_path, ["us-east-1", "eu-west-1"], 120, alive=False)
    assert changed
    end = datetime.strptime(first.expires, memory.FORMAT).replace(tzinfo=UTC)
    assert timedelta(minutes=119) < end - datetime.now(UTC) <= timedelta(minutes=120)
    assert memory.remember(tmp_path, ["us-east-1", "eu-west-1"], 600, alive=True) == (False, first)
    assert stat.S_IMODE(memory.path(tmp_path).stat().st_mode) == 0o600
    changed, later = memory.remember(tmp_path, ["eu-west-1"], 600, alive=False)
    assert changed
    assert later.expires > first.expires, "new hosts have all of their time"
    assert later.regions == ["eu-west-1", "us-east-1"], "where the lab once was is not forgotten"


def test_end_that_is_past_is_renewed(tmp_path: Path) -> None:
    memory.path(tmp_path).write_text('{"regions": ["us-east-1"], "expires": "2020-01-01T00:00:00Z"}')
    _, now = memory.remember(tmp_path, ["us-east-1"], 10, alive=True)
    assert 9 <= memory.minutes_left(now.expires) <= 10


@pytest.mark.parametrize("text", ["{", '{"regions": "x"}', '{"regions": [], "expires": "x", "more": 1}'])
def test_memory_that_cannot_be_read_says_what_to_do(tmp_path: Path, text: str) -> None:
    memory.path(tmp_path).write_text(text)
    with pytest.raises(
        LabError, match=r"aws.json: cannot be read: .*Remove it and run playbooks/teardown.yml -e teardown_"
    ):
        memory.read(tmp_path)


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers as AWS's service does: with an address, or with what the path says."""

    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/broken" else 200)
        self.end_headers()
        self.wfile.write(b"198.51.100.9\n" if self.path == "/" else b"<html>login</html>")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    """A web server on loopback."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_operator_is_whoever_asks_or_who_is_named(service: str) -> None:
    assert origin.cidr("auto", f"{service}/") == "198.51.100.9/32"
    assert origin.cidr("203.0.113.0/24") == "203.0.113.0/24"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/broken", "Service Unavailable"),
        ("/portal", "it answers '<html>login</html>'"),
        ("", "Connection refused"),
    ],
)
def test_operator_that_is_not_to_be_had(service: str, path: str, said: str) -> None:
    where = f"{service}{path}" if path else "http://127.0.0.1:9/"
    with pytest.raises(LabError, match=rf"aws_operator_cidr: this machine's public address .*{said}.* Set it, such as"):
        origin.cidr("auto", where)


def test_rules_between_the_hosts() -> None:
    rules = peer_rules(["1194/udp", "5201/tcp", "esp"])
    assert [(rule["proto"], rule["from_port"], rule["to_port"]) for rule in rules] == [
        ("icmp", -1, -1),
        ("udp", 1194, 1194),
        ("tcp", 5201, 5201),
        ("50", -1, -1),
    ]
