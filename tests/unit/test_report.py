"""The report: what it says is what the tables say, in the order in which one wants to know it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from pages import Page
from reported import (
    CONFIGURATION,
    EVIDENCE,
    GOODPUT,
    POST,
    Reported,
    claim,
    inputs,
    sampled_record,
    stored,
    whole,
    with_claims,
    with_latency,
)

from tunnel_lab import report
from tunnel_lab.errors import LabError
from tunnel_lab.records import LinkState, Record
from tunnel_lab.report.facts import MOST_DRAWN

HOSTILE = "<script>alert('x')</script> <img src=x onerror=y> \"quoted\" | `pipe` & [a](b) *c*"


def texts(made: report.Inputs, directory: Path) -> tuple[str, str]:
    """Write a report and return both files."""
    paths = report.write(made, directory / "out")
    assert [path.name for path in paths] == ["report.html", "report.md"]
    html, markdown = (path.read_text(encoding="utf-8") for path in paths)
    return html, markdown


def page(made: report.Inputs, directory: Path) -> Page:
    """Write a report and return it taken apart; every element in it is closed where it should be."""
    found = Page(texts(made, directory)[0])
    assert not found.unclosed
    return found


@pytest.fixture
def complete(tmp_path: Path) -> Reported:
    return whole(tmp_path / "run-1")


def test_the_verdicts_come_first(complete: Reported, tmp_path: Path) -> None:
    html, markdown = texts(complete.inputs(), tmp_path)
    assert Page(html).tables[0][0] == ["Published", "Measured", "Verdict", "Best measured"]
    assert html.index('class="verdicts"') < html.index("<nav") < html.index('id="goodput"')
    heads = [line for line in markdown.splitlines() if line.startswith("|")]
    assert heads[0].startswith("| Published | Claim | Allows | Measured |")
    line = "Lab test (provider local), profile quick: 8 cells, 26 measurements. Link by relay: 80 ms round trip, "
    assert line in Page(html).text and line in markdown.replace("\N{NO-BREAK SPACE}", " ")
    assert "Started 2 January 2026, 03:04 UTC, commit abc1234." in markdown


def test_the_verdicts_are_those_of_the_table(complete: Reported, tmp_path: Path) -> None:
    rows = page(complete.inputs(), tmp_path).table("Published", "Verdict")
    assert len(rows) == 4, "the one that was not measured is below"
    first = rows[0]
    for part in ("21m", "OpenVPN over TCP takes 21 minutes", "6.20 to 7.33 Mbit/s; with tolerance 4.96 to 9.16"):
        assert part in first["Published"].replace("\N{NO-BREAK SPACE}", " ")
    measured = first["Measured"].replace("\N{NO-BREAK SPACE}", " ")
    for part in ("4.76 Mbit/s", "4.71 to 4.81 Mbit/s", "n = 3, 1 failed · S→C", "openvpn.old_tcp.redis_sync"):
        assert part in measured
    assert "✗ contradicted" in first["Verdict"] and "provisional" in first["Verdict"]
    assert "Where: table, row 1" in first[""]
    assert claim()["reason"].removeprefix("m") in first[""]
    best = first["Best measured"].replace("\N{NO-BREAK SPACE}", " ")
    assert best == "92.0 Mbit/s with openvpn.new_udp.redis_sync"
    assert "12.2 \N{MULTIPLICATION SIGN} closest pair, 11.9 to 12.4" in rows[1]["Measured"].replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "at least 1.00" in rows[1]["Published"].replace("\N{NO-BREAK SPACE}", " ")


def test_few_repeats_make_a_verdict_provisional_and_it_says_why(complete: Reported, tmp_path: Path) -> None:
    html, markdown = texts(complete.inputs(), tmp_path)
    said = "3 repeats of the 6 that an interval needs to cover 95%; this one covers at most 75%"
    assert said in Page(html).text and said in markdown
    complete.claims = [claim(n=8, coverage=0.95, provisional=False)]
    assert "rovisional" not in page(complete.inputs(), tmp_path).table("Published", "Verdict")[0]["Verdict"]


def test_sources_with_their_caveats_and_what_was_not_measured(complete: Reported, tmp_path: Path) -> None:
    found = page(complete.inputs(), tmp_path)
    assert "A post 2016" in found.text and "It gives no round trip." in found.text
    assert "No router: OpenVPN over TCP takes 21 minutes (800 kB/s)" in found.text
    verdicts = "1 reproduced, 1 contradicted, 1 inconclusive, 1 not comparable, 1 not measured"
    assert f"Of 5 published claims: {verdicts}." in found.text


def test_goodput_is_that_of_the_summary(complete: Reported, tmp_path: Path) -> None:
    made = complete.inputs()
    rows = page(made, tmp_path).table("Cell", "Median Mbit/s", "Least to most")
    shown = {(row["Cell"], row["Way"]): row for row in rows}
    assert len(shown) == len(made.summary)
    for each in made.summary.to_dict("records"):
        found = shown[f"{each['tunnel']}.{each['variant']}.{each['workload']}", "S→C"]
        assert found["Median Mbit/s"] == f"{each['goodput_median_bit_s'] / 1e6:.2f}"
        assert (found["n"], found["Failed"]) == (str(each["n"]), str(each["n_failed"]))
        least, most = found["Least to most"].split(" to ")
        assert (float(least), float(most)) == pytest.approx(
            (each["goodput_min_bit_s"] / 1e6, each["goodput_max_bit_s"] / 1e6), abs=0.005
        )
    assert shown["ssh.plain.redis_sync", "S→C"]["Failed"] == "1"
    assert shown["openvpn.old_tcp.redis_sync", "S→C"]["Median Mbit/s"] == f"{GOODPUT['openvpn.old_tcp'] / 1e6:.2f}"


def test_cost_overhead_and_limits(complete: Reported, tmp_path: Path) -> None:
    found = page(complete.inputs(), tmp_path)
    cost = {row["Cell"]: row for row in found.table("Cell", "Overhead", "Predicted")}["openvpn.old_tcp.redis_sync"]
    assert list(cost.values())[2:8] == ["41.8", "21.5", "65.7", "33.3", "1.118", "1.116"]
    limits = {row["Cell"]: row for row in found.table("Cell", "Limit", "Evidence")}["openvpn.old_tcp.redis_sync"]
    assert (limits["Limit"], limits["Repeats"]) == ("window", "3 of 3")
    assert limits["Evidence"] == f"{EVIDENCE}, repeat 2", "the repeat at the median"


def test_round_trips(complete: Reported, tmp_path: Path) -> None:
    rows = page(complete.inputs(), tmp_path).table("Cell", "Idle p50", "Loaded p99")
    assert {row["Cell"].rpartition(".")[2] for row in rows} == {"redis_sync"}
    assert [rows[0][name] for name in ("Idle p50", "Idle p99", "Loaded p95")] == ["80.0", "82.0", "170.0"]


def test_drift_and_failed_repeats(complete: Reported, tmp_path: Path) -> None:
    last = max(complete.rows, key=lambda row: row["order"])
    last["goodput_bit_s"] = 95e6 * 0.9
    found = page(complete.inputs(), tmp_path)
    (drift,) = found.table("First, Mbit/s", "Change")
    assert (drift["First, Mbit/s"], drift["Last, Mbit/s"]) == ("95.00", "85.50")
    assert drift["Change"].replace("\N{NO-BREAK SPACE}", " ") == "-10.0 %"
    (bad,) = found.table("Status", "Reason")
    assert (bad["Cell"], bad["Repeats"], bad["Status"]) == ("ssh.plain.redis_sync", "3", "failed")
    assert bad["Reason"] == "iperf3: exit status 1: unable to connect to server"
    assert "1 of 26 planned repeats have no good record" in found.text


def test_environment_configuration_and_insecure_variants(complete: Reported, tmp_path: Path) -> None:
    html, markdown = texts(complete.inputs(), tmp_path)
    found = Page(html)
    (link,) = found.table("Emulator", "measured")
    assert list(link.values()) == ["relay", "80", "80.21", "100", "95.40", "1000000", "0", "run-1"]
    hosts = {row["What"]: (row["Is"], row["Where"]) for row in found.table("What", "Is", "Where")}
    assert hosts["openvpn"] == ("2.6.14", "server, client")
    assert hosts["inventories"] == ("inventories/local", "controller")
    assert "1: lo: <LOOPBACK,UP>" in found.text
    assert CONFIGURATION in [each.text for each in found.all("pre")]
    assert "/etc/vpn.conf on the server and the client" in found.text
    assert {row["Variant"] for row in found.table("Variant", "Why")} == {"openvpn.old_tcp"}
    assert f"```\n{CONFIGURATION}```" in markdown


def test_hostile_text_is_only_text(complete: Reported, tmp_path: Path) -> None:
    complete.fail("ssh.plain.redis_sync", 2, HOSTILE)
    complete.claims = [claim(says=HOSTILE, reason=HOSTILE, printed=HOSTILE, best_cell=HOSTILE, place=HOSTILE)]
    complete.sources = {"post": POST.model_copy(update={"title": HOSTILE, "caveats": [HOSTILE]})}
    for row in complete.rows:
        row |= {"override": f"x='{HOSTILE}' $\\frac{{1}}{{2}}$", "limit_evidence": HOSTILE if row["limit"] else None}
    files = {"server": sampled_record().before["server"].model_copy(update={"files": {HOSTILE: f"```\n{HOSTILE}"}})}
    complete.write(sampled_record(), "none.bare.redis_sync", 1, before=files)
    html, markdown = texts(complete.inputs(), tmp_path)
    found = Page(html)
    assert not found.unclosed
    assert {each.tag for each in found.elements}.isdisjoint({"script", "img", "iframe", "object", "link", "base"})
    assert not [name for each in found.elements for name in each.attributes if name.startswith("on")]
    assert found.text.count("<script>alert('x')</script>") >= 8, "it is there to be read"
    outside = re.sub(r"^(`{3,})\n.*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in re.sub(r"(`+).*?\1", "", outside)
    lines = [line for line in outside.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    for above, below, line in zip(widths, widths[1:], lines[1:], strict=False):
        assert above == below or not line.startswith("| ---"), line


def test_markdown_tables_are_even(complete: Reported, tmp_path: Path) -> None:
    _, markdown = texts(complete.inputs(), tmp_path)
    for block in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE):
        lines = block.splitlines()
        assert set(lines[1]) <= set("| -:")
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1, lines[0]


def test_the_same_records_give_the_same_bytes(complete: Reported, tmp_path: Path) -> None:
    first, second = (report.write(complete.inputs(), tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert str(tmp_path) not in first[0].read_text() + first[1].read_text(), "nor do they say where they lie"


def test_the_page_needs_nothing_else(complete: Reported, tmp_path: Path) -> None:
    html, _ = texts(complete.inputs(), tmp_path)
    found = Page(html)
    assert not found.all("script") and not found.all("link")
    assert "src" not in {name for each in found.elements for name in each.attributes}
    links = [each.attributes["href"] for each in found.elements if "href" in each.attributes]
    ids = [each.attributes["id"] for each in found.elements if "id" in each.attributes]
    used = [link.removeprefix("#") for link in links] + re.findall(r"url\(#([^)]+)\)", html)
    assert links and all(link.startswith("#") for link in links)
    assert len(ids) == len(set(ids)), "the figures' ids clash"
    assert set(used) <= set(ids)
    style = "".join(each.text for each in found.all("style"))
    assert "@import" not in style and "url(" not in style


def test_every_figure_is_told_in_words_and_takes_the_colours_of_the_page(complete: Reported, tmp_path: Path) -> None:
    html, markdown = texts(complete.inputs(), tmp_path)
    figures = Page(html).all("svg")
    assert len(figures) == 2 + 2 + 1 + 1 + 1, "goodput, CPU, overhead, time series, round trips"
    for each in figures:
        assert each.attributes["role"] == "img"
        assert re.search(r"\d", each.attributes["aria-label"])
    words = [each.attributes["aria-label"].replace("\N{NO-BREAK SPACE}", " ") for each in figures]
    assert any("openvpn.old_tcp S→C 4.76 Mbit/s" in said and "limit is 95.6 Mbit/s" in said for said in words)
    drawn = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert not re.findall(
        r"#[0-9a-f]{6}\b(?![^<>]*</text>)", re.sub(r'(?:href|id)="[^"]*"|url\([^)]*\)', "", "".join(drawn))
    )
    assert "var(--ink)" in drawn[0] and "var(--tunnel-2)" in drawn[0]
    assert "openvpn.old_tcp S→C" in drawn[0], "text is text"
    assert "4.76" in markdown


def test_without_samples_it_says_so(tmp_path: Path) -> None:
    made = stored(tmp_path / "run-1")
    for row in made.rows:
        row.update({name: None for name in row if name.startswith(("limit", "wire", "server.", "client."))})
    made.write(sampled_record().model_copy(update={"after": {}}), "openvpn.old_tcp.iperf3", 2)
    found = page(made.inputs("openvpn.old_tcp.iperf3:2"), tmp_path)
    assert "The hosts were not sampled, so no row says what limited it." in found.text
    assert "its hosts were not sampled, so there is nothing to show" in found.text
    assert "CPU cost" not in found.text


def test_without_claims_there_is_no_verdict(tmp_path: Path) -> None:
    found = page(stored(tmp_path / "run-1").inputs(), tmp_path)
    assert "No published figure speaks of what was measured here." in found.text
    assert "verdicts" not in [each.attributes.get("class") for each in found.all("table")]


def test_a_run_in_which_all_failed(tmp_path: Path) -> None:
    made = stored(tmp_path / "run-1")
    for step in made.run.plan.steps:
        made.fail(step.cell, step.repeat, "no record: the run ended before this repeat", "aborted")
    found = page(made.inputs(), tmp_path)
    assert "No repeat has a figure." in found.text
    assert "26 of 26 planned repeats have no good record" in found.text
    assert "There is no good repeat whose record could be shown." in found.text
    assert "No run has a good figure at both ends." in found.text
    rows = found.table("Status", "Reason")
    assert sum(len(row["Repeats"].split(", ")) for row in rows) == 26
    assert not found.all("svg")


def test_records_of_an_old_schema_have_no_files(tmp_path: Path) -> None:
    made = stored(tmp_path / "run-1")
    record = sampled_record()
    before = {host: look.model_copy(update={"files": {}}) for host, look in record.before.items()}
    made.write(record, "ssh.plain.redis_sync", 1, before=before, schema_version=2)
    found = page(made.inputs(), tmp_path)
    assert "Its files are not in this record, which has schema version 2." in found.text
    assert "No record of it can be read." in found.text, "of the other variants"


def test_a_real_network_has_no_limit_drawn(tmp_path: Path) -> None:
    made = stored(tmp_path / "run-1", link=LinkState(emulator="none"))
    for row in made.rows:
        row |= {"link_emulator": "none", "rtt_ms": None, "rate_mbit": None, "queue_bytes": None, "loss_pct": None}
    with_latency(made)
    html, _ = texts(made.inputs(), tmp_path)
    assert "A real network, nothing emulated" in html and "The link's limit" not in html


class TestSeries:
    def test_by_default_of_the_first_claim_with_a_verdict(self, complete: Reported, tmp_path: Path) -> None:
        complete.claims[0]["verdict"] = "not comparable"
        found = page(complete.inputs(), tmp_path)
        assert "ssh.plain.redis_sync, repeat" in found.text, "of the ranking, which comes next"

    def test_else_of_the_slowest_cell_at_its_median(self, complete: Reported, tmp_path: Path) -> None:
        complete.claims = []
        found = page(complete.inputs(), tmp_path)
        assert re.search(r"openvpn\.old_tcp\.\w+, repeat 2 of run run-1: server to client, 4\.76.Mbit/s\.", found.text)

    def test_values_are_those_of_the_samples(self, complete: Reported, tmp_path: Path) -> None:
        found = page(complete.inputs("openvpn.old_tcp.redis_sync:1"), tmp_path)
        assert "openvpn.old_tcp.redis_sync, repeat 1 of run run-1" in found.text
        rows = {row["Curve"]: row for row in found.table("Curve", "Median")}
        assert rows["to the client"]["Median"] == "30.0 Mbit/s"
        assert rows["congestion window"]["Median"] == "579 kB", "400 segments of 1448 bytes"
        assert rows["in flight"]["Median"] == "290 kB", "200 of them"
        assert rows["send buffer"]["Median"] == "65.5 kB", "half of tb"
        assert float(rows["server"]["Median"].split()[0]) == pytest.approx(0.6, rel=0.02)
        assert "Socket 10.99.0.1:5201 of openvpn on the server" in found.text

    @pytest.mark.parametrize(
        ("series", "said"),
        [
            ("openvpn.old_tpc.redis_sync", "no such cell in this run. Did you mean 'openvpn.old_tcp.redis_sync'?"),
            ("openvpn.old_tcp.redis_sync:9", "openvpn.old_tcp.redis_sync has the repeats 1, 2, 3."),
            ("openvpn.old_tcp.redis_sync:x", "openvpn.old_tcp.redis_sync has the repeats 1, 2, 3."),
        ],
    )
    def test_one_that_there_is_not(self, complete: Reported, tmp_path: Path, series: str, said: str) -> None:
        with pytest.raises(LabError, match=re.escape(said)):
            texts(complete.inputs(series), tmp_path)

    def test_one_without_a_record(self, tmp_path: Path) -> None:
        made = stored(tmp_path / "run-1")
        with pytest.raises(LabError, match="there is no record of this repeat"):
            texts(made.inputs("ssh.plain.iperf3:1"), tmp_path)
        with pytest.raises(LabError, match="no good repeat whose record can be read"):
            texts(made.inputs("ssh.plain.iperf3"), tmp_path)

    def test_by_default_a_lost_record_is_no_error(self, tmp_path: Path) -> None:
        assert "no good repeat whose record" in page(stored(tmp_path / "run-1").inputs(), tmp_path).text


def test_several_runs_and_what_differs(tmp_path: Path) -> None:
    one = stored(tmp_path / "run-1", run_id="run-1")
    other = stored(
        tmp_path / "run-2",
        run_id="run-2",
        environment={"server": {"kernel": "6.2.0"}, "client": {"kernel": "6.2.0"}, "controller": {"git_commit": "def"}},
    )
    found = page(inputs([one, other]), tmp_path)
    assert "Tunnel lab report on 2 runs" in found.text
    differ = {row["What"]: row for row in found.table("What", "In run-1", "In the other")}
    assert differ["git commit"]["In run-1"] == "abc1234def"
    assert [row["Run"] for row in found.table("First, Mbit/s")] == ["run-1", "run-2"]


def test_two_links_are_kept_apart(tmp_path: Path) -> None:
    one = stored(tmp_path / "run-1", run_id="run-1")
    other = stored(tmp_path / "run-2", run_id="run-2")
    for row in other.rows:
        row["rtt_ms"] = 20.0
    with_claims(one)
    other.claims = [claim(rtt_ms=20.0, measured=9.9e6)]
    found = page(inputs([one, other]), tmp_path)
    titles = [each.text for each in found.all("h3")]
    assert {"iperf3 [rtt_ms=80.0]: goodput", "iperf3 [rtt_ms=20.0]: goodput"} <= set(titles)
    cells = [(row["Cell"], row["Way"]) for row in found.table("Cell", "Median Mbit/s")]
    assert len(cells) == len(set(cells)) and ("ssh.plain.iperf3 [rtt_ms=20.0]", "S→C") in cells
    assert "test (local), link relay, 20 ms round trip, 100 Mbit/s" in found.text, "above its verdicts"
    assert len([each for each in found.all("table") if each.attributes.get("class") == "verdicts"]) == 2


def test_two_thousand_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["none.bare", *(f"openvpn.v{number:04d}" for number in range(2000))]
    made = stored(tmp_path / "run-1", names, ["iperf3"], repeats=1)
    with_claims(made, claim(cell="openvpn.v1999.iperf3"))
    given = made.inputs()
    read: list[Path] = []
    real = Record.read

    def counted(path: Path) -> Record:
        read.append(path)
        return real(path)

    monkeypatch.setattr(Record, "read", staticmethod(counted))
    started = pd.Timestamp.now()
    html, markdown = texts(given, tmp_path)
    seconds = (pd.Timestamp.now() - started).total_seconds()
    assert seconds < 8
    assert len(html) < 3e6 and len(markdown) < 2e6
    assert len(read) < 250
    assert f"{2001 - MOST_DRAWN} more rows are not drawn; summary.csv has them all." in html
    assert "1801 more rows are not shown; summary.csv has them all." in html
    drawn = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)[0]
    assert drawn.count("openvpn.v") <= MOST_DRAWN + 20 and "openvpn.v1999" in drawn, "published figures come first"


def test_a_source_that_is_not_there_any_more(tmp_path: Path) -> None:
    made = with_claims(stored(tmp_path / "run-1"))
    made.sources = {}
    assert "post" in [each.text.strip() for each in page(made.inputs(), tmp_path).all("h2")]


def test_rows_of_one_cell_with_other_settings_are_told_apart(tmp_path: Path) -> None:
    one, other = (stored(tmp_path / name, run_id=name) for name in ("run-1", "run-2"))
    for row in other.rows:
        row["settings_id"] = "set-2"
    cells = [row["Cell"] for row in page(inputs([one, other]), tmp_path).table("Cell", "Median Mbit/s")]
    assert len(cells) == len(set(cells)) and "ssh.plain.iperf3 [set-2 duration_s=10]" in cells
