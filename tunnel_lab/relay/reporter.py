"""Turns the running relay's state into its status file, and judges once a second whether it keeps up."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime

from tunnel_lab.relay.config import RelayConfig
from tunnel_lab.relay.errors import RelayError
from tunnel_lab.relay.lateness import PaceJudge
from tunnel_lab.relay.loop import Direction, Loop
from tunnel_lab.relay.status import DirectionStatus, Status


class Reporter:
    """Writes the status of one loop."""

    def __init__(self, config: RelayConfig, loop: Loop) -> None:
        self._config = config
        self._loop = loop
        self._judge = PaceJudge()
        self._started = time.monotonic()
        self._started_at = _utc_now()
        self._complained = False

    def first(self) -> None:
        """Write the first status. RelayError when it cannot be written, as nobody could follow the relay."""
        try:
            self._status(None).write(self._config.status_file)
        except OSError as error:
            where = f"status file {self._config.status_file}"
            raise RelayError(f"{where}: {error.strerror}; give one in an existing directory") from error

    def tick(self) -> None:
        """Judge the last second and rewrite the status; failing to write it does not stop the link."""
        uptime = self._uptime()
        for each in self._loop.directions:
            self._judge.observe(each.name, each.lateness, each.source.unread_drops(), uptime)
        self._write(None)

    def last(self, reason: str) -> None:
        """Write the final status: stopped, and why."""
        self._write(reason)

    def _uptime(self) -> float:
        return time.monotonic() - self._started

    def _write(self, stopped: str | None) -> None:
        try:
            self._status(stopped).write(self._config.status_file)
        except OSError as error:
            if not self._complained:
                print(f"{self._config.status_file}: {error.strerror}", file=sys.stderr, flush=True)
            self._complained = True

    def _status(self, stopped: str | None) -> Status:
        uptime = self._uptime()
        behind = self._judge.reason(uptime)
        return Status(
            state="stopped" if stopped else "running",
            reason=stopped,
            pid=os.getpid(),
            realtime=os.sched_getscheduler(0) == os.SCHED_FIFO,
            config=asdict(self._config),
            started_at=self._started_at,
            updated_at=_utc_now(),
            uptime_s=round(uptime, 3),
            cpu_s=round(time.process_time(), 3),
            wakeups=self._loop.wakeups,
            bad_windows=self._judge.bad_windows,
            directions={each.name: _direction_status(each) for each in self._loop.directions},
            keeps_up=behind is None,
            keeps_up_reason=behind,
        )


def _direction_status(direction: Direction) -> DirectionStatus:
    channel, lateness = direction.channel, direction.lateness
    return DirectionStatus(
        frames_in=channel.frames_in,
        bytes_in=channel.bytes_in,
        frames_out=direction.frames_out,
        bytes_out=direction.bytes_out,
        dropped_queue=channel.dropped_queue,
        dropped_loss=channel.dropped_loss,
        dropped_write=direction.dropped_write,
        dropped_unread=direction.source.unread_drops(),
        queue_bytes_max=channel.queue_bytes_max,
        lateness_ms_p50=lateness.percentile_ms(0.5),
        lateness_ms_p99=lateness.percentile_ms(0.99),
        lateness_ms_max=lateness.max_ms,
        lateness_ms_buckets=lateness.buckets(),
    )


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
