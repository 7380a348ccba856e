"""Archives: the same bytes for the same files, and nothing of one that holds what it should not."""

from __future__ import annotations

import errno
import gzip
import io
import os
import random
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tunnel_lab import archive
from tunnel_lab.errors import LabError

Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, content: bytes = b"text", **fields: object) -> Entry:
    """A member of a tar file; `fields` replace what a plain file has."""
    made = tarfile.TarInfo(name)
    made.size = len(content)
    for field, value in fields.items():
        setattr(made, field, value)
    return made, content


def tar_gz(path: Path, entries: Iterable[Entry]) -> Path:
    """Write members as they are given."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member, content in entries:
            tar.addfile(member, io.BytesIO(content))
    return path


def tree(directory: Path) -> Path:
    """Some files."""
    (directory / "run" / "raw").mkdir(parents=True)
    (directory / "run" / "run.json").write_text("{}")
    (directory / "run" / "raw" / "ö.json").write_text("long " * 1000)
    (directory / "run" / "empty").touch()
    return directory / "run"


def refused(path: Path, tmp_path: Path) -> str:
    """Return why an archive is refused; nothing may be outside of where it was unpacked."""
    target = tmp_path / "out" / "inside"
    before = set(tmp_path.rglob("*"))
    with pytest.raises(LabError) as error:
        archive.unpack(path, target)
    new = set(tmp_path.rglob("*")) - before
    assert all(found.is_relative_to(tmp_path / "out") for found in new)
    assert all(found in (target, target.parent) or found.is_relative_to(target) for found in new), new
    assert not [found for found in new if found.is_symlink()]
    assert len(str(error.value).splitlines()) == 1
    assert str(error.value).startswith(f"{path}: ")
    return str(error.value)


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    source = tree(tmp_path / "from")
    archive.pack(source, tmp_path / "a.tar.gz", 1_000_000_000)
    found = archive.unpack(tmp_path / "a.tar.gz", tmp_path / "to")
    assert set(found) == {"run.json", "raw/ö.json", "empty"}
    for name, member in found.items():
        assert (tmp_path / "to" / name).read_bytes() == (source / name).read_bytes()
        assert member == archive.describe(source / name)
    # of the empty file, by every implementation
    assert found["empty"].sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        for each in tar:
            assert (each.uid, each.gid, each.uname, each.gname, each.mtime, each.mode) == (0, 0, "", "", 10**9, 0o644)


def test_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        source = tree(tmp_path / name)
        os.utime(source / "run.json", (len(name), len(name)))
        (source / "run.json").chmod(0o600 if name == "one" else 0o755)
        archive.pack(source, tmp_path / f"{name}.tar.gz", 5)
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    assert (tmp_path / "one.tar.gz").stat().st_mode & 0o777 == 0o644


def test_what_exists_is_left_as_it_is(tmp_path: Path) -> None:
    source = tree(tmp_path / "from")
    there = tmp_path / "a.tar.gz"
    there.write_text("mine")
    with pytest.raises(LabError, match=r"a\.tar\.gz: exists already"):
        archive.pack(source, there, 0)
    assert there.read_text() == "mine"
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(LabError, match="dangling: exists already"):
        archive.pack(source, tmp_path / "dangling", 0)
    with pytest.raises(LabError, match=r"a\.tar\.gz/b: cannot be written: Not a directory|File exists"):
        archive.pack(source, there / "b", 0)
    assert {found.name for found in tmp_path.iterdir()} == {"from", "a.tar.gz", "dangling"}


def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tree(tmp_path / "from")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(LabError, match=r"a\.tar\.gz: cannot be written: No space left on device"):
        archive.pack(source, tmp_path / "a.tar.gz", 0)
    assert [found.name for found in tmp_path.iterdir()] == ["from"]
    monkeypatch.undo()
    archive.pack(source, tmp_path / "a.tar.gz", 0)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(LabError, match=r"a\.tar\.gz: cannot be unpacked into .*: No space left on device"):
        archive.unpack(tmp_path / "a.tar.gz", tmp_path / "to")


@pytest.mark.parametrize(
    "name",
    [
        *("../evil", "top/../../evil", "top/../evil", "/etc/evil", "top//evil", "top/./evil", "./top/evil", "evil"),
        *("top/", "..", "top/a\nb", "top/\x1b[2J", "top/\udcff"),
    ],
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    path = tar_gz(tmp_path / "a.tar.gz", [entry("top/good"), entry(name)])
    assert "no name below one directory" in refused(path, tmp_path) or "no plain file" in refused(path, tmp_path)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("symlink", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        ("link inside", {"type": tarfile.SYMTYPE, "linkname": "good"}),
        ("hard link", {"type": tarfile.LNKTYPE, "linkname": "top/good"}),
        ("device", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),
        ("block device", {"type": tarfile.BLKTYPE}),
        ("pipe", {"type": tarfile.FIFOTYPE}),
        ("directory", {"type": tarfile.DIRTYPE}),
        ("contiguous", {"type": tarfile.CONTTYPE}),
        ("sparse", {"pax_headers": {"GNU.sparse.map": "0,4", "GNU.sparse.size": "99999999999"}}),
    ],
)
def test_what_is_no_plain_file(tmp_path: Path, kind: str, fields: dict[str, object]) -> None:
    empty = kind not in ("sparse", "contiguous")
    path = tar_gz(tmp_path / "a.tar.gz", [entry("top/good"), entry("top/odd", b"" if empty else b"text", **fields)])
    assert "no plain file" in refused(path, tmp_path)


def test_the_same_name_twice(tmp_path: Path) -> None:
    path = tar_gz(tmp_path / "a.tar.gz", [entry("top/a"), entry("top/b"), entry("top/a", b"other")])
    assert "holds a twice" in refused(path, tmp_path)
    path = tar_gz(tmp_path / "b.tar.gz", [entry("top/a"), entry("top/a/b")])
    assert "cannot be unpacked" in refused(path, tmp_path / "b")
    path = tar_gz(tmp_path / "c.tar.gz", [entry("one/a"), entry("two/b")])
    assert "more than one directory: one, two" in refused(path, tmp_path / "c")


def test_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1000)
    path = tar_gz(tmp_path / "a.tar.gz", [entry("top/a", b"x" * 600), entry("top/b", b"x" * 600)])
    assert "holds more than" in refused(path, tmp_path)
    monkeypatch.setattr(archive, "MOST_FILES", 2)
    path = tar_gz(tmp_path / "b.tar.gz", [entry(f"top/{number}", b"") for number in range(3)])
    assert "holds more than" in refused(path, tmp_path)


def test_a_size_that_is_a_lie_writes_nothing(tmp_path: Path) -> None:
    header, _ = entry("top/a", b"")
    header.size = 9 * 10**9
    with gzip.open(tmp_path / "a.tar.gz", "wb") as stream:
        stream.write(header.tobuf(tarfile.GNU_FORMAT))
    assert "holds more than 8 GB" in refused(tmp_path / "a.tar.gz", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_without_end_are_not_read_into_memory(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("top/header")
    header.type, header.size = kind, 5 * 10**9
    with gzip.open(tmp_path / "a.tar.gz", "wb") as stream:
        stream.write(header.tobuf(tarfile.GNU_FORMAT) + b"x" * 4096)
    assert "not a whole tar.gz archive" in refused(tmp_path / "a.tar.gz", tmp_path)


def whole(tmp_path: Path) -> bytes:
    """A good archive, of noise so that it does not shrink."""
    archive.pack(tree(tmp_path / "from"), tmp_path / "whole.tar.gz", 0)
    return (tmp_path / "whole.tar.gz").read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: good[:-1],
        lambda good: good[:-9],
        lambda good: good[: len(good) // 2],
        lambda good: good[:20],
        lambda good: b"",
        lambda good: b"not a tar",
        lambda good: gzip.compress(b"not a tar"),
        lambda good: gzip.compress(b""),
        gzip.decompress,
        lambda good: good[:40] + b"\xff\xff\xff\xff" + good[44:],
    ],
)
def test_what_is_no_whole_archive(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.tar.gz").write_bytes(damage(whole(tmp_path)))
    assert "not a whole tar.gz archive" in refused(tmp_path / "a.tar.gz", tmp_path)


def test_data_behind_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(gzip.decompress(whole(tmp_path)) + b"more"))
    assert "behind its end" in refused(tmp_path / "a.tar.gz", tmp_path)


def test_noise_never_makes_a_traceback(tmp_path: Path) -> None:
    good = gzip.decompress(whole(tmp_path))
    noise = random.Random(2016)
    for number in range(300):
        bad = bytearray(good)
        for _ in range(noise.randrange(1, 6)):
            bad[noise.randrange(3072)] = noise.randrange(256)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(bytes(bad), 1))
        target = tmp_path / "noise" / str(number)
        try:
            archive.unpack(path, target)
        except LabError as error:
            assert len(str(error).splitlines()) == 1
    assert {found.name for found in tmp_path.iterdir()} == {"from", "whole.tar.gz", "a.tar.gz", "noise"}


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is a directory"):
        archive.unpack(tmp_path, tmp_path / "to")
    with pytest.raises(LabError, match="No such file"):
        archive.unpack(tmp_path / "gone", tmp_path / "to")
