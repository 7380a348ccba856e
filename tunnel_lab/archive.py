"""A tar.gz that is the same bytes whenever it holds the same files, and how one of somebody else is unpacked.

An archive from elsewhere can hold anything. Only plain files below one directory are taken out of it, each is written
anew without owner, mode or link, and their number and size are limited before anything is written.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tunnel_lab.errors import LabError

MOST_BYTES = 8 * 10**9
"""Of all files in an archive together."""
MOST_FILES = 100_000
LARGEST_READ = 1 << 20
"""tarfile reads files in pieces, but headers whole, however long they say they are."""


@dataclass(frozen=True)
class Member:
    """What a file is, as it came out of an archive or goes into one."""

    size: int
    sha256: str


def describe(path: Path) -> Member:
    """Return size and hash of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Member(path.stat().st_size, digest)


def pack(directory: Path, path: Path, mtime: int) -> None:
    """Write every file below `directory` into the archive `path`, under the directory's name.

    The same files give the same bytes: sorted names, one time, no owners. A LabError when `path` exists already, or
    when it cannot be written; nothing is left of it then.
    """
    with (
        _new(path) as draft,
        draft.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(found for found in directory.rglob("*") if found.is_file()):
            entry = tarfile.TarInfo(f"{directory.name}/{file.relative_to(directory).as_posix()}")
            entry.size, entry.mtime, entry.mode = file.stat().st_size, mtime, 0o644
            with file.open("rb") as stream:
                tar.addfile(entry, stream)


@contextmanager
def _new(path: Path) -> Iterator[Path]:
    """Give a file to write; it becomes `path` when all went well, unless there is something by then."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        draft = Path(temporary)
        try:
            yield draft
            draft.chmod(0o644)
            _link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}. Use --output FILE.") from error


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError as error:
        raise exists(path) from error


def exists(path: Path) -> LabError:
    """Return what is said of a file that is there already."""
    return LabError(f"{path}: exists already and is left as it is. Remove it, or use --output FILE.")


class _Guarded(gzip.GzipFile):
    """A gzip stream that gives nobody more than a piece at a time."""

    def read(self, size: int | None = -1) -> bytes:
        """Return at most `size` bytes, which must be at most LARGEST_READ."""
        if size is None or not 0 <= size <= LARGEST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return super().read(size)


def unpack(path: Path, directory: Path) -> dict[str, Member]:
    """Unpack the archive `path` into the empty `directory`; return {name below its one top directory: what it is}.

    Raises LabError, in one line, when it cannot be read to its end, and when it holds anything but plain files of
    reasonable names, number and size below one directory.
    """
    if path.is_dir():
        raise LabError(f"{path}: is a directory; a bundle is one file.")
    try:
        with _Guarded(path, "rb") as packed:
            with tarfile.open(fileobj=packed, mode="r:") as tar:
                found = _unpack(tar, directory)
            rest = packed.read(LARGEST_READ)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise LabError(f"{path}: not a whole tar.gz archive: {error}. Fetch it again.") from error
    except _Refused as error:
        raise LabError(f"{path}: {error}. It was not made by this program; nothing of it is used.") from error
    except OSError as error:
        why = error.strerror or error
        raise LabError(f"{path}: cannot be unpacked into {directory}: {why}. TMPDIR names another place.") from error
    if rest.strip(b"\0"):
        raise LabError(f"{path}: holds data behind its end. It was not made by this program; nothing of it is used.")
    return found


class _Refused(Exception):
    """What an archive holds that no bundle does."""


def _unpack(tar: tarfile.TarFile, directory: Path) -> dict[str, Member]:
    found: dict[str, Member] = {}
    tops: set[str] = set()
    total = 0
    for entry in tar:
        top, name = _place(entry)
        tops.add(top)
        total += entry.size
        if name in found:
            raise _Refused(f"holds {name} twice")
        if len(tops) > 1:
            raise _Refused(f"holds more than one directory: {', '.join(sorted(tops))}")
        if total > MOST_BYTES or len(found) >= MOST_FILES:
            raise _Refused(f"holds more than {MOST_BYTES / 1e9:g} GB or {MOST_FILES} files")
        found[name] = _write(tar, entry, directory / name)
    return found


def _place(entry: tarfile.TarInfo) -> tuple[str, str]:
    """Return (top directory, name below it) of a plain file; anything else is refused."""
    shown = entry.name[:80]
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.sparse is not None or entry.size < 0:
        raise _Refused(f"{shown!r} in it is no plain file")
    top, *parts = entry.name.split("/")
    odd = [part for part in (top, *parts) if part in ("", ".", "..") or not part.isprintable()]
    if odd or not parts or PurePosixPath(entry.name).is_absolute():
        raise _Refused(f"{shown!r} in it is no name below one directory")
    return top, "/".join(parts)


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> Member:
    """Write one file anew, without what the archive says of owner and mode."""
    source = tar.extractfile(entry)
    if source is None:
        raise _Refused(f"{entry.name!r} in it is no plain file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with source, path.open("xb") as target:
        shutil.copyfileobj(source, target, LARGEST_READ)
    found = describe(path)
    if found.size != entry.size:
        raise EOFError(f"{entry.name} is cut short")
    return found
