"""Bundles: what is in one, and what is not."""

from __future__ import annotations

import errno
import functools
import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from bundles import PLAIN, SMALL, bundled, by_repeat, claims, everything, members
from conftest import StoredRun

from tunnel_lab import bundle, parsing, tables
from tunnel_lab.errors import LabError

Make = Callable[..., StoredRun]
PRIVATE = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"


@pytest.fixture(autouse=True)
def _parser_of_the_tests(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "parser_for", functools.partial(parsing.parser_for, roles=roles))
    monkeypatch.setattr(bundle, "commit", lambda: "def5678")


@pytest.fixture
def stored(make_run: Make) -> StoredRun:
    """A whole run whose tunnel has a configuration file."""
    made = make_run(lab_override={"pipe": {"sndbuf": 7}})
    made.write(by_repeat)
    record = made.record(made.step(SMALL, 1), by_repeat(made.step(SMALL, 1)))
    files = {"/etc/pipe/small.conf": "cipher AES\n", "/etc/../..": "odd\n", "/x/\n.ssh/../..hidden": "odd\n"}
    before = {**record.before, "server": record.before["server"].model_copy(update={"files": files})}
    made.replace(SMALL, 1, by_repeat(made.step(SMALL, 1)), before=before)
    return made


def test_everything_that_a_run_is(stored: StoredRun) -> None:
    found = members(bundled(stored))
    assert set(found) >= {
        *("run.json", "runs.csv", "summary.csv", "claims.csv", "timeseries.csv.gz", "report.html", "report.md"),
        *("choices.yml", "RERUN.md", "MANIFEST.json", "claims/paper.yml"),
        "configuration/pipe.small/server/small.conf",
        *(f"raw/{SMALL}.r{repeat}.json" for repeat in (1, 2, 3)),
        *(f"raw/none.bare.iperf3.r{repeat}.json" for repeat in (0, 4)),
    }
    assert found["run.json"] == (stored.path / "run.json").read_bytes()
    assert found[f"raw/{SMALL}.r1.json"] == stored.file(SMALL, 1).read_bytes()
    assert found["configuration/pipe.small/server/small.conf"] == b"cipher AES\n"
    assert all(name.count("/") == 3 for name in found if name.startswith("configuration/"))
    assert yaml.safe_load(found["choices.yml"]) == {"lab_override": {"pipe": {"sndbuf": 7}}}
    for said in (b"abc1234", b"def5678", b"verify run-1.tunnel-lab.tar.gz", b"lab_rerun=run-1.tunnel-lab.tar.gz"):
        assert said in found["RERUN.md"]


def test_manifest_has_every_file(stored: StoredRun) -> None:
    found = members(bundled(stored))
    manifest = json.loads(found.pop("MANIFEST.json"))
    assert (manifest["format_version"], manifest["run_id"]) == (1, "run-1")
    assert (manifest["git_commit_of_run"], manifest["git_commit_of_bundle"]) == ("abc1234", "def5678")
    assert manifest["files"] == {
        name: {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)} for name, text in found.items()
    }


def test_figures_are_those_of_the_records_and_not_of_what_lay_there(stored: StoredRun, tmp_path: Path) -> None:
    for name in ("runs.csv", "summary.csv", "claims.csv", "report.html", "report.md", "timeseries.csv.gz"):
        (stored.path / name).write_text("forged")
    path = bundled(stored)
    with bundle.run_directory(path) as directory:
        summary = pd.read_csv(directory / "summary.csv").set_index("variant")
        judged = pd.read_csv(directory / "claims.csv")
        assert b"forged" not in everything(path)
        assert len(tables.collect([directory])[0]) == 8
    assert summary.loc["small", "goodput_median_bit_s"] == 4e6  # a megabyte in 1, 2 and 4 s
    # with an override it is not what was published
    assert list(zip(judged["claim"], judged["verdict"], strict=True)) == [("small", "not measured")]


def test_same_run_gives_the_same_bytes_wherever_it_lies(stored: StoredRun, tmp_path: Path) -> None:
    first = bundled(stored)
    elsewhere = StoredRun(tmp_path / "other" / "copied", stored.run)
    shutil.copytree(stored.path, elsewhere.path)
    for path in elsewhere.path.rglob("*"):
        os.utime(path, (1, 1))
    second = bundle.make(elsewhere.path, tmp_path / "b.tar.gz", claims(tmp_path / "claims")).path
    assert first.read_bytes() == second.read_bytes()
    assert str(tmp_path).encode() not in everything(first)


def test_foreign_files_links_and_secrets_stay_where_they_are(stored: StoredRun, tmp_path: Path) -> None:
    secret = tmp_path / "id_ed25519"
    secret.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PRIVATE}\n")
    for name in ("id_ed25519", "raw/id_ed25519", "raw/stranger.r1.json", ".hidden", "notes.txt"):
        (stored.path / name).write_text(secret.read_text())
    (stored.path / "report.svg").symlink_to(secret)
    (stored.path / "configuration").mkdir()
    (stored.path / "configuration" / "key").write_text(PRIVATE)
    (stored.path / "raw" / f"{PLAIN}.r9.json").symlink_to(secret)
    path = bundled(stored)
    assert PRIVATE.encode() not in everything(path)
    assert not {name for name in members(path) if "id_ed25519" in name or "stranger" in name or "notes" in name}


def test_record_that_is_a_link_is_left_out_and_told(stored: StoredRun, tmp_path: Path) -> None:
    file = stored.file(SMALL, 2)
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    made = bundle.make(stored.path, tmp_path / "a.tar.gz", claims(tmp_path / "claims"))
    assert f"raw/{SMALL}.r2.json" not in members(made.path)
    assert made.warnings == ["run-1: 1 of 8 planned repeats have no record"]
    (stored.path / "run.json").rename(tmp_path / "run.json")
    (stored.path / "run.json").symlink_to(tmp_path / "run.json")
    with pytest.raises(LabError, match=r"run\.json: is a link"):
        bundle.make(stored.path, tmp_path / "b.tar.gz")


def test_run_under_way_is_bundled_with_a_warning(make_run: Make, tmp_path: Path) -> None:
    stored = make_run()
    stored.write(by_repeat, (SMALL, 3), (PLAIN, 3), ("none.bare.iperf3", 4))
    stored.file(SMALL, 1).write_text("{")
    made = bundle.make(stored.path, tmp_path / "a.tar.gz", claims(tmp_path / "claims"))
    assert made.warnings[-1] == "run-1: 3 of 8 planned repeats have no record"
    assert made.warnings[0].startswith(f"{stored.file(SMALL, 1)}: not complete JSON")
    assert members(made.path)[f"raw/{SMALL}.r1.json"] == b"{"


def test_default_place_is_beside_the_run_and_nothing_is_overwritten(stored: StoredRun, tmp_path: Path) -> None:
    (stored.path.parent / "latest").symlink_to("run-1")
    made = bundle.make(stored.path.parent / "latest", claims_dir=claims(tmp_path / "claims"))
    assert made.path == stored.path.parent / "run-1.tunnel-lab.tar.gz"
    before = made.path.read_bytes()
    with pytest.raises(LabError, match=r"run-1\.tunnel-lab\.tar\.gz: exists already"):
        bundle.make(stored.path, claims_dir=claims(tmp_path / "claims"))
    assert made.path.read_bytes() == before


def test_full_disk_is_one_line(stored: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(LabError, match="No space left on device; no bundle was made"):
        bundle.make(stored.path, tmp_path / "a.tar.gz")
    assert not (tmp_path / "a.tar.gz").exists()


@pytest.mark.parametrize("name", ["../../x.y.z", "/etc/a.b.c", ".hidden.a.b", "a\n.b.c"])
def test_plan_whose_names_lead_elsewhere(stored: StoredRun, tmp_path: Path, name: str) -> None:
    run_json = stored.path / "run.json"
    data = json.loads(run_json.read_text())
    data["plan"]["cells"][name] = data["plan"]["cells"][SMALL]
    data["plan"]["steps"][1]["cell"] = name
    run_json.write_text(json.dumps(data))
    with pytest.raises(LabError, match="cannot be that of a run or a cell"):
        bundle.make(stored.path, tmp_path / "a.tar.gz")


@pytest.mark.parametrize("field", ["tunnel", "workload", "variant"])
def test_names_of_parsers_are_plain(stored: StoredRun, tmp_path: Path, field: str) -> None:
    run_json = stored.path / "run.json"
    data = json.loads(run_json.read_text())
    data["plan"]["cells"][SMALL][field] = "copy/../../../../../../../../../../tmp/evil"  # roles/workload_copy/../...
    run_json.write_text(json.dumps(data))
    with pytest.raises(LabError, match=f"plan.cells.{SMALL}.{field}"):
        bundle.make(stored.path, tmp_path / "a.tar.gz")


def test_series_is_whole(stored: StoredRun) -> None:
    text = gzip.decompress(members(bundled(stored))["timeseries.csv.gz"]).decode()
    assert text.startswith("run_id,cell,repeat,host,time_s,metric,value\n")
