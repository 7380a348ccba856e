"""Time series: known rates of constructed counters, at the times they belong to."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from builders import COMMAND_S
from sampled import BEGUN_S, Side, machine, process, receives, sampled, sends, steady

from tunnel_lab import timeseries
from tunnel_lab.errors import LabError
from tunnel_lab.records import Record


def table(tmp_path: Path, *records: Record) -> pd.DataFrame:
    """Write the series of `records` and read them."""
    path = tmp_path / "timeseries.csv.gz"
    timeseries.write(iter(records), path)
    return pd.read_csv(path)


def busy(made: pd.DataFrame, host: str, metric: str) -> pd.Series[float]:
    """Return the values of a metric in the middle of the command."""
    rows = made[(made["host"] == host) & (made["metric"] == metric) & made["time_s"].between(1, COMMAND_S - 1)]
    assert len(rows) >= 10, metric
    return rows["value"]


def test_rates_are_those_of_the_counters(tmp_path: Path) -> None:
    server = {
        **machine(user=0.5, softirq=0.25),
        **process("openvpn", 0.4, pid=9),
        "host|cpu_ns": steady(0.6e9),
        "Udp|RcvbufErrors": steady(20),
    }
    made = table(tmp_path, sampled(Side(server, [sends(24e6)]), Side({}, [receives(24e6)]), link=30e6))
    assert list(made.columns) == timeseries.HEADER
    known = {
        ("client", "link_rx_bit_s"): 30e6,
        ("server", "cpu_cores"): 0.6,
        ("server", "cpu_user_share"): 0.25,  # half of one of two
        ("server", "cpu_softirq_share"): 0.125,
        ("server", "process_cores openvpn[9]"): 0.4,
        ("server", "udp_rcvbuf_errors_per_s"): 20,
        ("server", "cwnd_bytes iperf3:10.99.0.1:5201"): 400 * 1448,
        ("server", "rtt_ms iperf3:10.99.0.1:5201"): 0,
    }
    for (host, metric), value in known.items():
        assert busy(made, host, metric).mean() == pytest.approx(value, rel=0.02), metric


def test_time_is_counted_from_the_first_command(tmp_path: Path) -> None:
    made = table(tmp_path, sampled(link=8e6))
    assert made["time_s"].min() == pytest.approx(BEGUN_S + 0.2, abs=0.001)
    rates = made[(made["metric"] == "link_rx_bit_s") & (made["host"] == "client")].set_index("time_s")["value"]
    assert rates[rates.index < -0.01].max() == 0, "the idle second"
    assert rates[rates.index > 0.21].iloc[0] == pytest.approx(8e6, rel=0.001)


def test_two_repeats_and_hosts_are_told_apart(tmp_path: Path) -> None:
    first = sampled()
    second = first.model_copy(update={"step": first.step.model_copy(update={"repeat": 2})})
    made = table(tmp_path, first, second)
    assert set(zip(made["repeat"], made["host"], strict=True)) == {
        (1, "server"),
        (1, "client"),
        (2, "server"),
        (2, "client"),
    }
    assert set(made["cell"]) == {"none.bare.iperf3"}


def test_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.gz", "b.gz")]
    for path in paths:
        timeseries.write(iter([sampled()]), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert gzip.decompress(paths[0].read_bytes()).startswith(b"run_id,cell,repeat,host,time_s,metric,value\n")


@pytest.mark.parametrize("text", ["", "garbage", '{"meta":{}}\n["at","cpu|user"]\n[1,2]\n[2,3]\n'])
def test_samples_that_cannot_be_used_give_no_lines(tmp_path: Path, text: str) -> None:
    made = sampled()
    after = {**made.after, "server": made.after["server"].model_copy(update={"samples": text})}
    found = table(tmp_path, made.model_copy(update={"after": after}))
    assert set(found["host"]) <= {"client"}


def test_record_without_a_command_gives_no_lines(tmp_path: Path) -> None:
    assert table(tmp_path, sampled().model_copy(update={"commands": []})).empty


def test_what_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="cannot be written"):
        timeseries.write(iter([]), tmp_path / "file" / "timeseries.csv.gz")

    def fails() -> Record:
        raise LabError("in mid-way")

    records: Callable[[], Record] = fails
    with pytest.raises(LabError, match="in mid-way"):
        timeseries.write((records() for _ in range(1)), tmp_path / "timeseries.csv.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
