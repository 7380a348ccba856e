"""Medians, ratios, and how sure one can be of them: intervals that hold for any distribution and any number of repeats.

A bootstrap interval of a median is too narrow for few repeats: of 7 it is from the second to the sixth value, which
covers 1 - 2 * 8 / 128 = 87.5 %, not 95 %. Those here are made of the ranks and cover what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, isnan, nan
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
FEWEST = 6
"""With fewer values no interval of their median covers 95 %: that from the least to the greatest misses 2 / 2^n."""
WIDE = 0.1
"""A relative half-width of an interval beyond which a figure is said to be rough."""


@dataclass(frozen=True)
class Interval:
    """A median of `n` values, or a ratio, with its 95 % interval.

    `low` and `high` are NaN for n < 2: one value says nothing of the next. `coverage` is how often such an interval
    holds the true value: at least 0.95, or the little that so few values allow.
    """

    n: int
    median: float
    low: float
    high: float
    coverage: float

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return not isnan(self.low)

    @property
    def nominal(self) -> bool:
        """Whether it is a 95 % interval."""
        return self.known and self.coverage >= CONFIDENCE

    @property
    def half_width(self) -> float:
        """The longer side of the interval as a share of the median; NaN without an interval."""
        return max(self.high - self.median, self.median - self.low) / abs(self.median) if self.median else nan


NOTHING = Interval(0, nan, nan, nan, nan)


def interval(values: Sequence[float]) -> Interval:
    """Return the median of `values` with the interval of the sign test; NaN among them is left out.

    scipy.stats.quantile_test: Conover, Practical Nonparametric Statistics, 1999, section 3.2. With less than 6
    values it is from the least to the greatest and covers 1 - 2 / 2^n: 0.5, 0.75, 0.875, 0.9375 for 2, 3, 4, 5.
    """
    return _interval(tuple(sorted(float(value) for value in values if not isnan(value))))


@cache
def _interval(values: tuple[float, ...]) -> Interval:
    n = len(values)
    if n == 0:
        return NOTHING
    median = float(np.median(values))
    if n < 2:
        return Interval(n, median, nan, nan, 0.0)
    if n < FEWEST:
        return Interval(n, median, values[0], values[-1], 1 - 2 * 0.5**n)
    found: Any = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
    outside = sum(comb(n, k) for k in range(values.index(found.low) + 1)) / 2**n
    return Interval(n, median, float(found.low), float(found.high), 1 - 2 * outside)


def paired_ratio(ones: Sequence[float], others: Sequence[float]) -> Interval:
    """Return the median of one / other over pairs that were measured in the same round, with its interval."""
    return interval([one / other for one, other in zip(ones, others, strict=True)])


def ratio(ones: Sequence[float], others: Sequence[float]) -> Interval:
    """Return by which factor `ones` are greater than `others`, two independent samples, with its interval.

    The median of all quotients, and the interval of the rank-sum test on logarithms (Hodges and Lehmann 1963; R's
    `wilcox.test(log(x), log(y), conf.int = TRUE)`): exact when both are alike but for a factor. `n` is that of the
    smaller sample. With 3 and 3 values it covers 0.9 at most, with 4 and 4 0.97.
    """
    n, m = len(ones), len(others)
    if not n or not m:
        return NOTHING
    quotients = np.sort(np.divide.outer(np.asarray(ones, float), np.asarray(others, float)).ravel())
    median = float(np.median(quotients))
    if min(n, m) < 2:
        return Interval(min(n, m), median, nan, nan, 0.0)
    below = np.cumsum(rank_sums(n, m)) / comb(n + m, n)
    cut = int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right"))
    rank = max(cut, 1)
    return Interval(
        min(n, m), median, float(quotients[rank - 1]), float(quotients[-rank]), float(1 - 2 * below[rank - 1])
    )


@cache
def rank_sums(n: int, m: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return in how many of the orders of n and m values the statistic of Mann and Whitney is 0, 1 ... n * m.

    These are the coefficients of the Gaussian binomial: the product of (1 - q^(m + i)) / (1 - q^i) for i = 1 ... n.
    """
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    return counts


def caution(found: Interval) -> str:
    """Return what has to be said beside a figure, '' when nothing: too few repeats, or too wide an interval."""
    if found.n == 0:
        return ""
    if not found.known:
        return "one repeat: no interval"
    said = []
    if not found.nominal:
        said.append(f"{found.n} repeats: the interval covers {found.coverage * 100:.0f} %, not 95 %")
    if found.half_width > WIDE:
        said.append(f"rough: ±{found.half_width * 100:.0f} %")
    return "; ".join(said)
