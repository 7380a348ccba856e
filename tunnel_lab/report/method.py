"""The method and its limits in short; docs/method.md, docs/why.md and docs/verdicts.md have all of it."""

from __future__ import annotations

from tunnel_lab import stats
from tunnel_lab.report.blocks import Bullets, Section, Text

METHOD = [
    "A cell is tunnel, variant and workload. Every repeat brings its tunnel up, checks in the tunnel's own logs "
    "that it does what the variant says, looks at both hosts, runs the workload, looks again, and takes the tunnel "
    "down.",
    "All cells are measured once in a shuffled order, then all again, so that a machine that slows down slows them "
    "all. The bare link opens and closes every run.",
    "Goodput is what the receiving application got, in bits, over the time that it took. A figure counts only if "
    "the tool's own output is complete and consistent, and the kernel's counters of both hosts account for its "
    "bytes.",
    "A repeat that fails keeps its record and its reason. It is never left out, never a zero, and never tried again "
    "in silence.",
    "What limited a transfer is told by rules over the kernel's own counters and sockets, sampled on both hosts "
    "meanwhile.",
]
LIMITS = [
    "Local hosts share one kernel and its processors with each other and with the emulated link. Where the CPU is "
    "the limit, the figure is this machine's, with both ends on it.",
    "An emulated link is a model: constant delay, a drop-tail queue, no other traffic, no reordering, and loss, "
    "where it is set, independent for each packet.",
    "Hosts whose CPU is emulated as fast as the emulator happens to be (cpu_emulation: free-running) say nothing of "
    "speed or CPU: their figures are kept, and verdicts on them are withheld.",
    "Published variants state the defaults of their time on today's programs: what the tunnel is told is as "
    "published, how it is programmed is not.",
    "Sizes and durations differ from what was published: compare rates, and mind that a short transfer is mostly "
    "slow start.",
    "What a tunnel's program holds back by itself shows as unclear or application, and UDP has no window to look at.",
]


def section() -> Section:
    """Return how a figure comes about, and what it cannot tell."""
    interval = (
        f"The interval of a median is that of the sign test and covers at least {stats.CONFIDENCE:.0%}. With less than "
        f"{stats.FEWEST} repeats none can, and verdicts on them are provisional. A verdict says where the whole "
        "interval lies: within the published figure with its tolerance (reproduced), wholly outside "
        "(contradicted), or neither (inconclusive)."
    )
    return Section(
        "method",
        "Method, and what it cannot tell",
        [
            Bullets([*METHOD, interval]),
            Text("What these figures cannot tell:"),
            Bullets(LIMITS),
            Text("In full: docs/method.md, docs/verdicts.md, docs/why.md, docs/result-format.md.", note=True),
        ],
    )
