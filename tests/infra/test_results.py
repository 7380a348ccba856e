"""The run that was just measured on these hosts, as the collector reads it."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path

import pandas as pd
import pytest
import testinfra

from tunnel_lab import accounting, manifests
from tunnel_lab.cli import main
from tunnel_lab.records import Host, Record, Run

LATEST = manifests.ROOT / "results" / "latest"
CEILING_BIT_S = 65536 * 8 / 0.080
"""One 64 KiB window per round trip of 80 ms, 6.55 Mbit/s."""


@pytest.fixture(scope="module")
def every() -> pd.DataFrame:
    """The run's rows."""
    return pd.read_csv(LATEST / "runs.csv")


@pytest.fixture(scope="module")
def runs(every: pd.DataFrame) -> pd.DataFrame:
    """Those with figures; the first test says which have none."""
    return every[every["status"] == "ok"]


def record(cell: str) -> Record:
    """Return the first repeat of a cell."""
    return Record.read(LATEST / "raw" / f"{cell}.r1.json")


def test_every_planned_repeat_has_a_good_row(every: pd.DataFrame) -> None:
    run = Run.read(LATEST / "run.json")
    assert run.lab == "molecule"
    bad = every[every["status"] != "ok"]
    assert set(bad["status"]) <= {"not_possible"}, list(bad["reason"])
    assert set(bad["tunnel"] + "." + bad["variant"] + "." + bad["workload"]) <= {
        name for name, cell in run.plan.cells.items() if cell.needs
    }
    planned = {(step.cell, step.repeat) for step in run.plan.steps}
    cells = every["tunnel"] + "." + every["variant"] + "." + every["workload"]
    assert set(zip(cells, every["repeat"], strict=True)) == planned


def test_what_a_kernel_may_lack_is_measured_where_it_is(every: pd.DataFrame, server: testinfra.host.Host) -> None:
    has = server.run("ip link add tl-asked type wireguard && ip link delete tl-asked").rc == 0
    mine = every[(every["tunnel"] == "wireguard") & (every["variant"] == "kernel")]
    assert set(mine["status"]) == {"ok" if has else "not_possible"}
    assert has or mine["reason"].str.startswith("not possible here: no WireGuard in the kernel (on the server: ").all()
    programs = every[every["variant"] == "userspace"]
    assert set(programs["tunnel"]) == {"wireguard", "ipsec"}
    assert set(programs["status"]) == {"ok"}, list(programs["reason"])
    assert set(programs["negotiated.server.device"].dropna()) == {"tun"}
    assert set(programs["negotiated.client.kernel_sas"].dropna()) == {0}


def test_every_row_of_the_post_is_measured(runs: pd.DataFrame) -> None:
    rows = set((runs["tunnel"] + "." + runs["variant"] + "." + runs["workload"]).unique())
    assert rows >= {
        "openvpn.published_tcp.redis_sync",
        "openvpn.published_tcp_comp.redis_sync",
        "openvpn.published_udp.redis_sync",
        "openvpn.published_udp_comp.redis_sync",
        "ssh.published_default.redis_sync",
        "ssh.published_nocomp.redis_sync",
        "ssh.published_comp.redis_sync",
        "openvpn.published_tcp_comp.iperf2",
        "openvpn.published_tcp_aes256.iperf2",
        "openvpn.published_udp_comp.iperf2",
        "openvpn.published_udp_aes256.iperf2",
        "ssh.published_aes128ctr.iperf2",
    }


def test_link_was_what_it_was_set_to() -> None:
    link = Run.read(LATEST / "run.json").link
    assert link.emulator in ("relay", "netem")
    assert link.measured_rtt_ms == pytest.approx(80, abs=1)
    assert link.measured_goodput_bit_s == pytest.approx(95e6, rel=0.011)


def test_nothing_is_faster_than_the_link_but_what_compresses(runs: pd.DataFrame) -> None:
    # what was lost and repaired arrives at once; latency's two seconds may begin just before that
    plain = runs[~runs["variant"].str.contains("comp|aes256") & (runs["workload"] != "latency")]
    assert plain["goodput_bit_s"].max() < 100e6 * 1448 / 1514 * 1.02  # iperf counts in blocks of 128 KiB


def test_published_tcp_stays_under_its_window_and_the_record_proves_the_window(runs: pd.DataFrame) -> None:
    mine = runs[(runs["variant"] == "published_tcp") & (runs["workload"] == "redis_sync")]
    assert mine["goodput_bit_s"].max() < CEILING_BIT_S
    found = record("openvpn.published_tcp.redis_sync")
    hosts: tuple[Host, Host] = ("server", "client")
    for host in hosts:
        carrier = re.search(r"ESTAB.*?:1194.*?rb(\d+),.*?tb(\d+)", found.after[host].sockets)
        assert carrier is not None
        assert carrier.groups() == ("131072", "131072")
    assert found.negotiated["client.cipher"] == "BF-CBC"


def test_compressing_tunnel_sends_less_than_it_carries() -> None:
    found = record("openvpn.published_udp_comp.iperf2")
    inside = accounting.passed_bytes(found, "client", "tun0", "tx_bytes")
    outside = accounting.passed_bytes(found, "client", "link0", "tx_bytes")
    assert inside is not None and outside is not None
    assert outside < inside / 2  # iperf 2 sends a repeating pattern


def secrets() -> list[str]:
    """Return every password of the lab and a line of every private key."""
    home = manifests.ROOT / ".lab" / "molecule"
    passwords = [(home / f"{name}_password").read_text().strip() for name in ("redis", "latency", "ipsec")]
    private = [path for path in home.glob("*/*") if "PRIVATE KEY" in path.read_text().split("\n", 1)[0]]
    keys = [path.read_text().splitlines()[1] for path in private]
    assert [len(password) for password in passwords] == [32, 32, 32]
    # management and host key, both ends of ssh, the authority and both ends of OpenVPN
    assert len(keys) == 7
    return passwords + keys


def test_no_secret_is_in_the_results(server: testinfra.host.Host, client: testinfra.host.Host) -> None:
    own = [host.file("/etc/tunnel-lab/wireguard/key").content_string.strip() for host in (server, client)]
    assert [len(key) for key in own] == [44, 44]
    needles = secrets() + own
    for path in LATEST.resolve().rglob("*"):
        if path.is_file():
            text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
            assert not [secret for secret in needles if secret in text], path


def test_overhead_of_the_lab_itself_is_small(runs: pd.DataFrame) -> None:
    assert runs["overhead_s"].median() < 7
    for host in ("server", "client"):
        assert 0 < runs[f"{host}.sampler_cores"].median() < 0.02


def test_every_row_says_why(runs: pd.DataFrame) -> None:
    assert set(runs["limit"]) <= {"link", "window", "cpu", "loss", "application", "unclear"}
    assert runs["limit_evidence"].str.len().min() > 20
    assert runs["sampler"].all()
    for figure in ("server.cpu_s_per_gb", "client.cpu_s_per_gb", "server.idle_cpu_cores", "client.idle_cpu_cores"):
        assert runs[figure].min() >= 0, figure
        assert runs[figure].median() > 0, figure
    assert set(runs["server.cpu_split_of"]) == {"machine"}, "the hosts share a kernel"


def test_published_tcp_is_limited_by_its_window(runs: pd.DataFrame) -> None:
    mine = runs[runs["variant"] == "published_tcp"]  # a megabyte may be over before the window is filled
    limited = mine[mine["limit"] == "window"]
    assert len(limited) > 0, list(mine["limit_evidence"])
    assert set(limited["limit_window_bytes"]) == {65536}
    assert limited["limit_ceiling_bit_s"].tolist() == pytest.approx([CEILING_BIT_S] * len(limited), rel=0.02)


def test_counted_overhead_is_what_packet_formats_say(runs: pd.DataFrame) -> None:
    both = runs.dropna(subset=["wire_overhead", "wire_overhead_predicted"])
    both = both[both["payload_bytes"] > 10e6]  # a short transfer hangs on the moment of a look
    assert {"none", "ssh", "openvpn"} <= set(both["tunnel"])
    apart = (both["wire_overhead"] - both["wire_overhead_predicted"]).abs()
    explained = both["wire_note"].fillna("").str.startswith("counted and predicted differ")
    assert ((apart <= 0.01) | explained).all(), both[["tunnel", "variant", "workload", "wire_overhead"]]
    assert (apart.groupby(both["tunnel"]).median() <= 0.01).all(), apart
    compressing = runs["variant"].str.contains("comp|aes256") & (runs["tunnel"] == "openvpn")
    assert runs[compressing]["wire_note"].str.contains("compresses").all()


def test_time_series_cover_every_repeat_on_both_hosts(runs: pd.DataFrame) -> None:
    series = pd.read_csv(LATEST / "timeseries.csv.gz")
    repeats = series.groupby(["cell", "repeat"])["host"].agg(set)
    assert len(repeats) == runs["order"].nunique()
    assert all(hosts == {"server", "client"} for hosts in repeats)
    assert {"link_rx_bit_s", "cpu_cores", "cpu_softirq_share"} <= set(series["metric"])


def test_round_trips_are_those_of_the_link_until_a_bulk_fills_its_queue(runs: pd.DataFrame) -> None:
    latency = runs[runs["workload"] == "latency"]
    assert set(latency["tunnel"]) == {"none", "ssh", "openvpn"}
    # OpenVPN over TCP leaves Nagle's algorithm on: a small packet waits for the one before to be acknowledged
    nagle = (latency["tunnel"] == "openvpn") & latency["variant"].isin(["published_tcp", "modern_tcp"])
    assert latency[~nagle]["latency_idle_p50_ms"].between(80, 90).all()
    assert (latency[nagle]["latency_idle_p50_ms"] > 120).all()
    assert (latency[~nagle]["latency_loaded_p95_ms"] > 1.2 * latency[~nagle]["latency_idle_p50_ms"]).all()
    assert latency[latency["tunnel"] == "none"]["latency_tunnel_up_s"].isna().all()
    # a handshake of TCP and one of the tunnel's own are two round trips at least
    assert latency[latency["tunnel"] != "none"]["latency_tunnel_up_s"].between(0.16, 10).all()


def test_sockets_of_a_forward_are_those_that_the_post_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sockets", "ssh.published_nocomp.redis_sync", "--when", "during"]) == 0
    client, server = capsys.readouterr().out.split("server, during the transfer")
    assert re.search(r"ssh +LISTEN +127\.0\.0\.1:20000", client)
    assert re.search(r"ssh +ESTAB +127\.0\.0\.1:20000 +127\.0\.0\.1:\d+", client)
    assert re.search(r"redis-server +ESTAB +127\.0\.0\.1:\d+ +127\.0\.0\.1:20000", client)
    assert re.search(r"ssh +ESTAB +10\.99\.0\.2:\d+ +10\.99\.0\.1:2022", client)
    assert re.search(r"sshd-session +ESTAB +127\.0\.0\.1:\d+ +127\.0\.0\.1:6379", server)
    assert re.search(r"redis-server +ESTAB +127\.0\.0\.1:6379", server)


def test_records_can_be_collected_again_without_the_hosts(tmp_path: Path) -> None:
    assert main(["collect", str(LATEST), "--output", str(tmp_path)]) == 0
    for name in ("runs.csv", "summary.csv", "claims.csv", "timeseries.csv.gz", "report.html", "report.md"):
        assert (tmp_path / name).read_bytes() == (LATEST / name).read_bytes()


def test_records_hold_the_configuration_as_it_was_rendered(runs: pd.DataFrame) -> None:
    for cell, hosts in {
        "openvpn.published_tcp.redis_sync": {"server": "cipher BF-CBC", "client": "sndbuf 65536"},
        "openvpn.tuned_tcp.redis_sync": {"server": "tcp-nodelay", "client": "tcp-nodelay"},
        "ssh.published_nocomp.redis_sync": {"server": "Ciphers aes128-ctr", "client": "Compression no"},
    }.items():
        files = {str(host): "\n".join(seen.files.values()) for host, seen in record(cell).before.items()}
        for host, line in hosts.items():
            assert f"\n{line}\n" in files[host], files[host]
            assert "ExecStart=" in files[host]


def test_every_claim_has_a_verdict(runs: pd.DataFrame) -> None:
    judged = pd.read_csv(LATEST / "claims.csv").set_index("claim")
    post = judged[judged["source"] == "ssh-vs-openvpn-2016"]
    assert (judged.loc[judged["source"] != "ssh-vs-openvpn-2016", "verdict"] == "not measured").all()
    # one repeat has no interval, and 2 s of iperf are 25 round trips: too much slow start to be held against the post's
    assert set(post["verdict"]) <= {"inconclusive", "not comparable", "not measured"}
    assert post.loc["iperf-ssh", "verdict"] == "not comparable"
    # the bytes on the link of a megabyte are too few to be counted
    assert "not measured" not in set(post.loc[post["kind"] != "cause", "verdict"])
    goodput = runs[(runs["variant"] == "published_tcp") & (runs["workload"] == "redis_sync")]["goodput_bit_s"]
    assert post.loc["redis-ovpn-tcp", "measured"] == pytest.approx(goodput.median())
    assert (post["reason"].str.len() > 20).all()


def test_bundle_is_what_its_records_say_and_holds_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bundle.tar.gz"
    assert main(["bundle", str(LATEST), "--output", str(path)]) == 0
    home = manifests.ROOT / ".lab" / "molecule"
    # whatever file of the lab could be a secret: all lines of private keys, all of what is called a password
    lines = {
        line.strip()
        for file in home.rglob("*")
        if file.is_file() and ("password" in file.name or "PRIVATE KEY" in file.read_text(errors="replace"))
        for line in file.read_text(errors="replace").splitlines()
    }
    needles = {line for line in {*secrets(), *lines} if len(line) >= 16 and "-----" not in line}
    assert len(needles) >= 9, "two passwords and seven keys at least"
    with tarfile.open(path) as archive:
        names = archive.getnames()
        for entry in archive:
            stream = archive.extractfile(entry)
            assert stream is not None
            content = stream.read()
            text = (gzip.decompress(content) if entry.name.endswith(".gz") else content).decode()
            assert not [needle for needle in needles if needle in text], entry.name
            assert "PRIVATE KEY" not in text, entry.name
    run = Run.read(LATEST / "run.json")
    assert {f"{run.run_id}/raw/{step.cell}.r{step.repeat}.json" for step in run.plan.steps} <= set(names)
    assert any("/configuration/openvpn.published_tcp/server/" in name for name in names)
    capsys.readouterr()
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"verified: {len(run.plan.steps)} records, ")


def test_run_compared_with_its_bundle_differs_in_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bundle.tar.gz"
    assert main(["bundle", str(LATEST), "--output", str(path)]) == 0
    capsys.readouterr()
    assert main(["compare", str(LATEST), str(path), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["different"] == {"B": []}
    assert {row["ratio"] for row in shown["rows"]} == {1}
