"""All that a row says beside its goodput: what limited it, what it used, what its headers cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tunnel_lab import limit, overhead, usage
from tunnel_lab.flow import Flow, flow
from tunnel_lab.parsing import Measurement, evaluate
from tunnel_lab.plan import BARE
from tunnel_lab.records import Record, Run

COLUMNS = [
    *("limit", "limit_evidence", "limit_window_bytes", "limit_ceiling_bit_s", "link_utilisation", "link_full_share"),
    *("retransmitted_share", "transfer_s", overhead.COUNTED, "wire_overhead_predicted", "wire_note"),
]
"""Those that belong to no host, in their order."""
NOTE, UNUSABLE = "limit_evidence", "the samples cannot be used"


def link_rate(run: Run, records: Iterable[Record] = ()) -> float | None:
    """Return the link's rate in bit/s, Ethernet headers included: as set, else the best that the bare link carried."""
    if run.link.setting:
        return run.link.setting.rate_mbit * 1e6
    bare = [record for record in records if (record.cell.tunnel, record.cell.variant) == BARE[:2]]
    return max((_carried(record, each) for record in bare for each in evaluate(record)[1]), default=0.0) or None


def _carried(record: Record, measurement: Measurement) -> float:
    try:
        found = flow(record, measurement)
        return found.over_time(lambda rate: rate) if found else 0.0
    except Exception:  # noqa: BLE001  its own row says what is wrong with its samples
        return 0.0


def columns(run: Run, record: Record, measurement: Measurement, rate_bit_s: float | None) -> dict[str, Any]:
    """Return the columns; none where the hosts were not sampled, and a note alone where the samples cannot be used."""
    if not any(seen.samples for seen in record.after.values()):
        return {}
    try:
        found = flow(record, measurement)
        return _columns(run, found, rate_bit_s) if found else {NOTE: f"{UNUSABLE}: not complete on both hosts"}
    except Exception as error:  # noqa: BLE001  samples that cannot be read must not lose the figure
        return {NOTE: f"{UNUSABLE}: {type(error).__name__}: {error}"}


def _columns(run: Run, found: Flow, rate_bit_s: float | None) -> dict[str, Any]:
    limited = limit.diagnose(found, rate_bit_s)
    used, full = limit.utilisation(found, rate_bit_s) if rate_bit_s else (None, None)
    sent = [each for each in found.passages if each.host == found.sender and each.crosses and each.sent_bytes]
    return {
        "limit": limited.kind,
        "limit_evidence": limited.evidence,
        "limit_window_bytes": limited.window_bytes,
        "limit_ceiling_bit_s": limited.ceiling_bit_s,
        "link_utilisation": used,
        "link_full_share": full,
        "retransmitted_share": max((each.retransmitted for each in sent), default=None),
        "transfer_s": found.transfer[1] - found.transfer[0],
        **overhead.columns(found, run.environment.get(found.receiver, {}).get("link_mtu")),
        **usage.columns(found),
    }
