"""All that a row says beside its goodput: what limited it, what it used, what its headers cost."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Any

from tunnel_lab import limit, overhead, usage
from tunnel_lab.flow import flow
from tunnel_lab.parsing import Measurement, evaluate
from tunnel_lab.plan import BARE
from tunnel_lab.records import Record, Run

COLUMNS = [
    *("limit", "limit_evidence", "limit_window_bytes", "limit_ceiling_bit_s", "link_utilisation", "link_full_share"),
    *("retransmitted_share", "transfer_s", overhead.COUNTED, "wire_overhead_predicted", "wire_note"),
]
"""Those that belong to no host, in their order."""


def link_rate(run: Run, records: Iterable[Record] = ()) -> float | None:
    """Return the link's rate in bit/s, Ethernet headers included: as set, else the best that the bare link carried."""
    if run.link.setting:
        return run.link.setting.rate_mbit * 1e6
    bare = [record for record in records if (record.cell.tunnel, record.cell.variant) == BARE[:2]]
    flows = [flow(record, each) for record in bare for each in evaluate(record)[1]]
    return max((fmean(rates) for each in flows if each and (rates := each.rates())), default=None)


def columns(run: Run, record: Record, measurement: Measurement, rate_bit_s: float | None) -> dict[str, Any]:
    """Return the columns; none where the hosts were not sampled."""
    found = flow(record, measurement)
    if found is None:
        return {}
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
