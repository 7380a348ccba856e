"""The report of `redis_sync.py` to a measurement: the replica's own log says from when to when, and how much.

As in the post this comes from, the time runs from `sync started` to `Finished with success`.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from tunnel_lab.errors import from_validation
from tunnel_lab.parsing import BadOutput, Measurement, command
from tunnel_lab.records import Record

COMMAND = "server_to_client"

LINE = re.compile(
    r"^\d+:[A-Z] (\d{1,2}) ([A-Z][a-z]{2}) (?:(\d{4}) )?(\d{2}):(\d{2}):(\d{2})\.(\d{3}) [.\-*#] (.*)$", re.MULTILINE
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SYNC = r"MASTER <-> (?:REPLICA|SLAVE) sync"
STARTED = re.compile(SYNC + " started")
RECEIVING = re.compile(SYNC + r": receiving (\d+) bytes from master(?: to disk)?$")
RECEIVED = re.compile(SYNC + ": (?:Flushing old data|Loading DB in memory)")
FINISHED = re.compile(SYNC + ": Finished with success")
NOT_ANNOUNCED = re.compile(SYNC + ": receiving (streamed RDB .*|.* to parser)$")

ON_DISK: dict[str, str] = {"save": "", "appendonly": "no", "repl-timeout": "3600"}
MASTER_SETTINGS = {
    **ON_DISK,
    "repl-diskless-sync": "no",
    "repl-diskless-sync-delay": "0",
    "rdbcompression": "no",
}
REPLICA_SETTINGS = {**ON_DISK, "repl-diskless-load": "disabled"}


class Side(BaseModel):
    """What one of the two servers said afterwards."""

    info_after: str
    config: dict[str, str | None]
    dbsize: int
    digest: str


class Master(Side):
    """The same of the master, and what it said before."""

    info_before: str


class Timings(BaseModel):
    """Seconds of the client's monotonic clock."""

    replicaof_sent: float
    finished_seen: float


class Report(BaseModel):
    """The JSON of `redis_sync.py`."""

    format: Literal[1]
    replica_log: str
    master: Master
    replica: Side
    timings_s: Timings


class Entry(NamedTuple):
    """One line of a Redis log."""

    at: datetime
    text: str


class Phases(NamedTuple):
    """Where the time went; together the whole."""

    save_s: float
    """From `sync started` until the master announces the RDB: the handshake and its background save."""
    transfer_s: float
    load_s: float
    """Reading the received file into memory."""
    payload_bytes: int

    @property
    def whole_s(self) -> float:
        """From `sync started` to `Finished with success`."""
        return round(self.save_s + self.transfer_s + self.load_s, 3)


def parse(record: Record) -> list[Measurement]:
    """Return the one measurement; BadOutput when it cannot be trusted."""
    report = _read(command(record, COMMAND).stdout)
    _check_settings(report)
    phases = read_log(report.replica_log)
    _check_clock(phases, report.timings_s)
    _check_one_full_sync(report)
    _check_same_data(report)
    _check_amount(report, phases, int(record.cell.params["dataset_bytes"]), int(record.cell.params["value_bytes"]))
    size, whole, transfer = phases.payload_bytes, phases.whole_s, phases.transfer_s
    return [
        Measurement(
            direction="server_to_client",
            payload_bytes=size,
            duration_s=whole,
            goodput_bit_s=size * 8 / whole,
            extra={
                "redis_save_s": phases.save_s,
                "redis_transfer_s": transfer,
                "redis_load_s": phases.load_s,
                "redis_transfer_goodput_bit_s": size * 8 / transfer if transfer else None,
                "redis_keys": report.replica.dbsize,
                "redis_dataset_bytes": int(record.cell.params["dataset_bytes"]),
                "redis_version": _field(report.master.info_after, "redis_version"),
                "redis_replica_version": _field(report.replica.info_after, "redis_version"),
            },
        )
    ]


def _read(text: str) -> Report:
    try:
        return Report.model_validate(json.loads(text))
    except ValidationError as error:
        raise BadOutput(str(from_validation("redis_sync", error)).splitlines()[0]) from error
    except ValueError as error:
        raise BadOutput(f"redis_sync: the report is not complete JSON ({len(text)} characters): {error}") from error


def read_log(text: str) -> Phases:
    """Return the phases of the one synchronisation in a replica's log."""
    entries = _entries(text)
    streamed = next((found.group(1) for e in entries if (found := NOT_ANNOUNCED.search(e.text))), None)
    if streamed:
        raise BadOutput(
            f"replica log: 'receiving {streamed}': the RDB's size was not announced; "
            f"repl-diskless-sync must be 'no' on the master, repl-diskless-load 'disabled' on the replica"
        )
    started, receiving, finished = (_once(entries, pattern) for pattern in (STARTED, RECEIVING, FINISHED))
    received = next((e for e in entries if RECEIVED.search(e.text)), None)
    if received is None:
        raise BadOutput("replica log: no line says that the transfer ended")
    times = [started.at, receiving.at, received.at, finished.at]
    if times != sorted(times) or times[0] == times[-1]:
        raise BadOutput(f"replica log: its times are not in order: {', '.join(f'{at:%T.%f}' for at in times)}")
    announced = RECEIVING.search(receiving.text)
    return Phases(
        save_s=(times[1] - times[0]).total_seconds(),
        transfer_s=(times[2] - times[1]).total_seconds(),
        load_s=(times[3] - times[2]).total_seconds(),
        payload_bytes=int(announced.group(1)) if announced else 0,
    )


def _entries(text: str) -> list[Entry]:
    """Return the log's lines with their times; versions before 5 leave out the year, it may change on the way."""
    found: list[Entry] = []
    for day, month, year, hour, minute, second, milli, said in LINE.findall(text):
        if month not in MONTHS:
            raise BadOutput(f"replica log: unknown month {month!r}")
        since = int(year) if year else found[-1].at.year if found else 2000
        clock = (int(hour), int(minute), int(second), int(milli) * 1000)
        at = _datetime(since, MONTHS.index(month) + 1, int(day), clock)
        if not year and found and found[-1].at.month == 12 and at.month == 1:
            at = at.replace(year=since + 1)
        found.append(Entry(at, said))
    return found


def _datetime(year: int, month: int, day: int, clock: tuple[int, int, int, int]) -> datetime:
    try:
        return datetime(year, month, day, *clock)
    except ValueError as error:
        raise BadOutput(f"replica log: {year}-{month}-{day} {clock}: {error}") from error


def _once(entries: list[Entry], pattern: re.Pattern[str]) -> Entry:
    found = [entry for entry in entries if pattern.search(entry.text)]
    if len(found) != 1:
        raise BadOutput(f"replica log: '{pattern.pattern}' occurs {len(found)} times instead of once")
    return found[0]


def _check_clock(phases: Phases, timings: Timings) -> None:
    """The log goes by the wall clock, which can be set; the script watched by a clock that cannot.

    It sees the end a little late, and a replica of Redis 6 starts up to a second after it was told to.
    """
    watched = timings.finished_seen - timings.replicaof_sent
    if not watched - max(1.5, 0.02 * watched) <= phases.whole_s <= 1.001 * watched + 0.01:
        raise BadOutput(
            f"replica log: {phases.whole_s:.3f} s by the wall clock, but {watched:.3f} s by the monotonic clock"
        )


def _check_settings(report: Report) -> None:
    for name, config, expected in (
        ("master", report.master.config, MASTER_SETTINGS),
        ("replica", report.replica.config, REPLICA_SETTINGS),
    ):
        for key, value in expected.items():
            if config.get(key) != value:
                raise BadOutput(f"{name}: {key} is {config.get(key)!r}, expected {value!r}")
        if config.get("repl-rdb-channel") not in (None, "no"):
            raise BadOutput(f"{name}: repl-rdb-channel is {config['repl-rdb-channel']!r}, expected 'no'")
        limit = config.get("client-output-buffer-limit") or ""
        if not re.search(r"\b(?:slave|replica) 0 0 0\b", limit):
            raise BadOutput(f"{name}: client-output-buffer-limit is {limit!r}, expected none for replicas")


def _check_one_full_sync(report: Report) -> None:
    before, after = report.master.info_before, report.master.info_after
    if _field(before, "run_id") != _field(after, "run_id"):
        raise BadOutput("master: it was restarted meanwhile")
    full, partial = (int(_field(after, key)) - int(_field(before, key)) for key in ("sync_full", "sync_partial_ok"))
    if (full, partial) != (1, 0):
        raise BadOutput(f"master: {full} full and {partial} partial synchronisations instead of 1 and 0")
    state = {key: _field(report.replica.info_after, key) for key in ("role", "master_link_status")}
    if state != {"role": "slave", "master_link_status": "up"}:
        raise BadOutput(f"replica: not joined to the master after the synchronisation: {state}")


def _check_same_data(report: Report) -> None:
    master, replica = report.master, report.replica
    if not re.fullmatch(r"[0-9a-f]{40}", master.digest) or not master.digest.strip("0"):
        raise BadOutput(f"master: {master.digest!r} is not the digest of any data")
    if (master.dbsize, master.digest) != (replica.dbsize, replica.digest):
        raise BadOutput(
            f"the data differs: master {master.dbsize} keys {master.digest}, "
            f"replica {replica.dbsize} keys {replica.digest}"
        )


def _check_amount(report: Report, phases: Phases, dataset_bytes: int, value_bytes: int) -> None:
    """The RDB holds the data set that was asked for, uncompressed, and the replica got that much.

    Each value brings its key and a few bytes of lengths with it.
    """
    keys = -(-dataset_bytes // value_bytes)
    if report.replica.dbsize != keys:
        raise BadOutput(f"{report.replica.dbsize} keys instead of the {keys} of a data set of {dataset_bytes} bytes")
    most = dataset_bytes + 64 * keys + 4096
    if not dataset_bytes <= phases.payload_bytes <= most:
        raise BadOutput(
            f"the RDB has {phases.payload_bytes} bytes; a data set of {dataset_bytes} makes {dataset_bytes} to {most}"
        )
    counted = re.search(r"^total_net_repl_input_bytes:(\d+)", report.replica.info_after, re.MULTILINE)
    if counted and not phases.payload_bytes <= int(counted.group(1)) <= phases.payload_bytes + 1_000_000:
        raise BadOutput(
            f"replica: {counted.group(1)} bytes came from the master, announced were {phases.payload_bytes}"
        )


def _field(info: str, name: str) -> str:
    found = re.search(rf"^{name}:(.+?)\r?$", info, re.MULTILINE)
    if not found:
        raise BadOutput(f"redis: INFO has no {name}")
    return found.group(1)
