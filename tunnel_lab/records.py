"""What came back: one immutable JSON record per repeat, and one run.json per run.

Hosts record, the controller interprets: a record keeps the tools' own output, so that it can be read again
by a better parser. `results/<run_id>/run.json` and `results/<run_id>/raw/<cell>.r<repeat>.json`.
"""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from tunnel_lab.choices import Link
from tunnel_lab.errors import LabError, from_validation
from tunnel_lab.manifests import Strict
from tunnel_lab.plan import Cell, Plan, Step

SCHEMA_VERSION = 4
READABLE = (1, 2, 3, 4)
"""Version 3 had no clocks, 2 no files, 1 no samples, qdiscs and starts of units; what they had means the same."""
Host = Literal["server", "client"]
Status = Literal["ok", "failed", "aborted", "not_possible"]
M = TypeVar("M", bound="Stored")


class Command(Strict):
    """One tool run on one host, its output verbatim."""

    name: str
    """Which part of the workload this was, such as `server_to_client`; the parser goes by it."""
    argv: list[str]
    rc: int | None
    """Exit status; None when the time limit ended it."""
    stdout: str
    stderr: str
    started_at: str
    elapsed_s: float
    timed_out: bool = False


class Observation(Strict):
    """The state of one host at one moment."""

    at: float
    """Seconds since the epoch by the host's own clock."""
    counters: dict[str, dict[str, int]] = Field(default_factory=dict)
    """{interface: {rx_bytes, tx_bytes, rx_packets, tx_packets, rx_dropped, tx_dropped, ...}}"""
    logs: dict[str, str] = Field(default_factory=dict)
    """{unit: what it wrote since it was started}"""
    sockets: str = ""
    """`ss -tunapimOe` verbatim: buffers, congestion control, RTT, cwnd of the lab's sockets."""
    files: dict[str, str] = Field(default_factory=dict)
    """{path: text} of the tunnel's configuration, as it was rendered; before the workload only"""
    qdiscs: str = ""
    """`tc -s qdisc show` verbatim."""
    units: dict[str, float] = Field(default_factory=dict)
    """{unit: when its main process was started, in seconds of the host's monotonic clock}"""
    ping: str = ""
    """`ping` verbatim, where the target can be pinged through the tunnel."""
    samples: str = ""
    """What the sampler wrote since the look before, as roles/host_base/files/sampler.py describes it."""


class Stored(BaseModel):
    """A JSON document with a schema version, written once."""

    schema_version: int = SCHEMA_VERSION

    def write(self, path: Path) -> None:
        """Write to `path` in one step (0644); an existing file is never overwritten."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(self.model_dump_json(indent=1) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o644)
            os.link(temporary, path)
        except FileExistsError as error:
            raise LabError(f"{path}: exists already; a record is written once.") from error
        finally:
            Path(temporary).unlink()

    @classmethod
    def read(cls: type[M], path: Path) -> M:
        """Read `path`; a LabError names the file when it is missing, cut short, or of another schema."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise LabError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise LabError(f"{path}: not complete JSON: {error}") from error
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version not in READABLE:
            raise LabError(
                f"{path}: schema_version is {version!r}, this program reads {READABLE[0]} to {READABLE[-1]}."
            )
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise from_validation(str(path), error) from error


class LinkSeen(Strict):
    """The link's part in one repeat."""

    interfaces: dict[Host, str] = Field(default_factory=dict)
    """The link's interface on each host."""
    before: dict[str, Any] = Field(default_factory=dict)
    """The emulator's own counters: `{emulator: relay, ...}` as in tunnel_lab.relay.status, or tc's text."""
    after: dict[str, Any] = Field(default_factory=dict)


class Clock(Strict):
    """How a host's clock that goes by counted instructions stands to the time."""

    at_s: float
    """By the controller's monotonic clock."""
    lateness_ms: float
    """How far the host is behind; negative: ahead."""


class Clocks(Strict):
    """The clocks of the hosts that count instructions, right before and right after the workload."""

    before: dict[Host, Clock] = Field(default_factory=dict)
    after: dict[Host, Clock] = Field(default_factory=dict)
    worst: dict[Host, float] = Field(default_factory=dict)
    """The most that a host was behind in between, in ms, looked at four times a second."""


class Record(Stored):
    """One repeat of one cell."""

    run_id: str
    step: Step
    cell: Cell
    status: Status
    reason: str | None = None
    started_at: str
    """When the lab turned to this cell, UTC."""
    wall_s: float
    """From the end of the previous cell to the end of this one: workload plus the lab's own overhead."""
    negotiated: dict[str, str] = Field(default_factory=dict)
    """What the tunnel's own logs say is in force: {`server.cipher`: ...}."""
    before: dict[Host, Observation] = Field(default_factory=dict)
    after: dict[Host, Observation] = Field(default_factory=dict)
    commands: list[Command] = Field(default_factory=list)
    link: LinkSeen = LinkSeen()
    clocks: Clocks = Clocks()

    @property
    def overhead_s(self) -> float:
        """Seconds of `wall_s` that no workload command was running: the lab's own time."""
        return self.wall_s - sum(command.elapsed_s for command in self.commands)


class LinkState(Strict):
    """The link as it was set and as it was found."""

    emulator: str
    """`netem`, `relay`, or `none` for a real network."""
    setting: Link | None = None
    measured_rtt_ms: float | None = None
    measured_goodput_bit_s: float | None = None


class Run(Stored):
    """One run of the lab: what was planned, where, and under which conditions."""

    run_id: str
    lab: str
    provider: str
    started_at: str
    choices: dict[str, Any]
    plan: Plan
    link: LinkState
    environment: dict[str, dict[str, Any]]
    """{`server` | `client` | `controller`: {kernel, cpu_model, packages, sysctls, ...}}"""


def now() -> str:
    """Return the time as ISO 8601 UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def raw_path(run_dir: Path, step: Step) -> Path:
    """Return where the record of `step` belongs."""
    return run_dir / "raw" / f"{step.cell}.r{step.repeat}.json"
