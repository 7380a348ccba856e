"""How long it takes, and how much memory, to turn 10,000 records into tables, verdicts and a report."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pandas import read_csv

from tunnel_lab.manifests import ROOT

RECORDS = 10_000
SECONDS, BYTES = 30, 10**9
GENERATOR = Path(__file__).parent / "synthetic.py"


def collected(directory: Path, *options: str) -> tuple[float, int]:
    """Make a run, collect it, and return the seconds and the most memory that one of the processes had."""
    subprocess.run([sys.executable, GENERATOR, directory, *options], check=True, timeout=900)
    before = time.monotonic()
    subprocess.run(
        [sys.executable, ROOT / "collect.py", "collect", directory],
        check=True,
        timeout=900,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def test_ten_thousand_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds, memory = collected(tmp_path / "run", "--records", str(RECORDS), "--no-samples")
    with capsys.disabled():
        print(f"\n{RECORDS} records: {seconds:.1f} s, {memory / 1e6:.0f} MB")
    runs = read_csv(tmp_path / "run" / "runs.csv")
    assert len(runs) == 2 * RECORDS and set(runs["status"]) == {"ok"}
    assert (tmp_path / "run" / "report.html").stat().st_size < 5e6
    assert seconds < SECONDS
    assert memory < BYTES


def test_a_record_with_samples_costs_no_more_than_a_twentieth_of_a_second(tmp_path: Path) -> None:
    seconds, _ = collected(tmp_path / "run", "--records", "400")
    assert seconds < 10 + 400 / 20
