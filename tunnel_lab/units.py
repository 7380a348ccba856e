"""Units of figures: from what a publication prints to base units, and from base units to what people read.

The end of a column's name says what it holds: `goodput_bit_s` bit/s, `duration_s` s, `cpu_softirq_share` a share of 1.
"""

from __future__ import annotations

from math import isnan

SUFFIXES: dict[str, dict[str, float]] = {
    "_bit_s": {
        **{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Mb/s": 1e6, "Gbit/s": 1e9},
        **{"B/s": 8, "kB/s": 8e3, "MB/s": 8e6, "KiB/s": 8192, "MiB/s": 8 * 1048576},
    },
    "_s_per_gb": {"s/GB": 1},
    "_ms": {"ms": 1, "s": 1e3},
    "_share": {"share": 1, "%": 0.01},
    "_by_overhead": {"share": 1, "%": 0.01},
    "_cores": {"cores": 1, "%": 0.01},
    "_bytes": {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024, "MiB": 1048576, "GiB": 1073741824},
    "_mhz": {"MHz": 1},
    "_c": {"°C": 1},
    "_s": {"s": 1, "min": 60, "h": 3600},
}
"""{end of a column's name: {unit: how many of the column's own unit it is}}; the first that fits counts."""
NUMBER = {"1": 1.0, "%": 0.01}
"""Units of whatever else: a ratio, wire_overhead."""
TIMES = SUFFIXES["_s"]


def units_of(metric: str) -> dict[str, float]:
    """Return {unit: factor to the metric's base unit}."""
    return next((units for suffix, units in SUFFIXES.items() if metric.endswith(suffix)), NUMBER)


def pretty(value: float, metric: str) -> str:
    """Return a figure as people read it, three digits or so: `4.76 Mbit/s`, `28.5 %`, `14.1`; empty for NaN."""
    if isnan(value):
        return ""
    units = units_of(metric)
    if "Mbit/s" in units:
        return f"{digits(value / 1e6)} Mbit/s"
    if "%" in units and "share" in units:
        return f"{digits(value * 100)} %"
    unit = next(iter(units))
    return digits(value) if unit == "1" else f"{digits(value)} {unit}"


def digits(value: float) -> str:
    """Return three significant digits, or all before the point."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
