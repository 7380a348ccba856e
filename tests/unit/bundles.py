"""Bundles of small runs, and what somebody might do to one."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

from conftest import StoredRun, figure

from tunnel_lab import bundle
from tunnel_lab.plan import Step

SMALL, PLAIN = "pipe.small.copy", "pipe.plain.copy"
CLAIM = """
title: a paper
published: "2020"
claims:
  small:
    {kind: value, says: It carries 4 Mbit/s., place: table 1, cell: pipe.small.copy,
     figure: {printed: 4 Mbit/s, value: 4, unit: Mbit/s}}
"""


def by_repeat(step: Step) -> list[dict[str, object]]:
    """A megabyte in 1, 2, 4 s for repeats 1, 2, 3: 8, 4, 2 Mbit/s; the bare link in 0.5 and 0.625 s."""
    return [figure({0: 0.5, 1: 1.0, 2: 2.0, 3: 4.0, 4: 0.625}[step.repeat])]


def claims(directory: Path) -> Path:
    """Write one claim, and return the directory."""
    directory.mkdir(exist_ok=True)
    (directory / "paper.yml").write_text(CLAIM)
    return directory


def bundled(stored: StoredRun, name: str = "a.tar.gz") -> Path:
    """Return the bundle of a run."""
    directory = stored.path.parents[1]
    return bundle.make(stored.path, directory / name, claims(directory / "claims")).path


def members(path: Path) -> dict[str, bytes]:
    """Return {name below the top directory: content}."""
    with tarfile.open(path) as tar:
        return {entry.name.partition("/")[2]: content(tar, entry) for entry in tar}


def content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    """Return what a member holds."""
    stream = tar.extractfile(entry)
    assert stream is not None
    return stream.read()


def packed(files: Mapping[str, bytes], path: Path) -> Path:
    """Write files into an archive below one directory."""
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"top/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return path


def forged(path: Path, changes: Mapping[str, bytes | None], new_manifest: bool) -> Path:
    """Return a copy of a bundle with other files (None: without it), and perhaps with a manifest that fits them."""
    files = {name: text for name, text in {**members(path), **changes}.items() if text is not None}
    if new_manifest:
        manifest = json.loads(files[bundle.MANIFEST])
        manifest["files"] = {
            name: {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
            for name, text in files.items()
            if name != bundle.MANIFEST
        }
        files[bundle.MANIFEST] = json.dumps(manifest).encode()
    return packed(files, path.with_name("forged.tar.gz"))


def everything(path: Path) -> bytes:
    """Return the content of all members one after the other, unpacked where they are packed."""
    return b"\n".join(gzip.decompress(text) if name.endswith(".gz") else text for name, text in members(path).items())
