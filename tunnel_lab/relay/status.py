"""The relay's status file: its schema, and atomic writing and reading."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class DirectionStatus:
    """Counts since the start, of frames and layer-2 bytes. Every frame in ends up out, dropped, or in flight.

    Lateness is actual minus due delivery time; the percentiles are upper bucket edges. To look at a window,
    subtract the counts and lateness_ms_buckets of two readings.
    """

    frames_in: int
    bytes_in: int
    frames_out: int
    bytes_out: int
    dropped_queue: int
    """The bottleneck's queue was full."""
    dropped_loss: int
    """Random loss."""
    dropped_write: int
    """The receiving device refused the frame, mostly because it was down."""
    dropped_unread: int
    """Dropped by the kernel before the relay read them; not part of frames_in."""
    queue_bytes_max: int
    lateness_ms_p50: float
    lateness_ms_p99: float
    lateness_ms_max: float
    lateness_ms_buckets: dict[str, int]
    """"le_X": frames at most X ms late, "le_inf" being all that were delivered."""


@dataclass(frozen=True)
class Status:
    """One reading of the status file. Times are ISO 8601 in UTC, durations seconds."""

    state: str
    """"running" or "stopped"."""
    reason: str | None
    """Why it stopped."""
    pid: int
    realtime: bool
    config: dict[str, Any]
    started_at: str
    updated_at: str
    uptime_s: float
    cpu_s: float
    wakeups: int
    bad_windows: int
    """One-second windows, counted for each direction, in which the relay did not keep up; see PaceJudge."""
    directions: dict[str, DirectionStatus]
    """By "server_to_client" and "client_to_server"."""
    keeps_up: bool
    """False when a window of the last 10 s was bad: the relay, not the link it emulates, was the limit."""
    keeps_up_reason: str | None
    schema_version: int = SCHEMA_VERSION

    def write(self, path: Path) -> None:
        """Replace the file in one step: a reader sees the old or the new text. OSError when it cannot."""
        draft = path.with_name(f"{path.name}.tmp")
        try:
            draft.write_text(json.dumps(asdict(self), default=str) + "\n")
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, path: Path) -> Status:
        """OSError when there is no file; ValueError when it is not a status of this schema version."""
        try:
            fields = json.loads(path.read_text())
            if fields["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"schema_version {fields['schema_version']}, expected {SCHEMA_VERSION}")
            directions = {name: DirectionStatus(**each) for name, each in fields.pop("directions").items()}
            return cls(directions=directions, **fields)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ValueError(f"{path}: not a relay status: {error}") from error
