"""Intervals: against printed tables, closed forms and simulation."""

from __future__ import annotations

from math import comb, isnan, nan

import numpy as np
import pytest

from tunnel_lab import stats

RANKS = {6: 1, 7: 1, 8: 1, 9: 2, 10: 2, 12: 3, 15: 4, 20: 6, 25: 8, 30: 10, 40: 14, 50: 18}
"""{n: rank of the lower end of a 95 % interval of the median}, as printed in textbooks (Altman, Statistics with
Confidence, 2000, table 18.3)."""


@pytest.mark.parametrize(("n", "rank"), RANKS.items())
def test_interval_of_a_median_is_the_printed_one(n: int, rank: int) -> None:
    found = stats.interval([float(value) for value in reversed(range(1, n + 1))])
    assert (found.n, found.median, found.low, found.high) == (n, (n + 1) / 2, rank, n + 1 - rank)
    outside = sum(comb(n, k) for k in range(rank)) / 2**n
    assert found.coverage == pytest.approx(1 - 2 * outside) and found.coverage >= 0.95
    assert found.nominal


@pytest.mark.parametrize(("n", "coverage"), [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)])
def test_few_values_say_how_little_they_cover(n: int, coverage: float) -> None:
    found = stats.interval([float(value) for value in range(n)])
    assert (found.low, found.high, found.coverage) == (0, n - 1, coverage)
    assert found.known and not found.nominal


def test_one_value_and_none_have_no_interval() -> None:
    one, none = stats.interval([5.0]), stats.interval([nan])
    assert (one.n, one.median, one.known, one.nominal) == (1, 5, False, False)
    assert (none.n, none.known, none.nominal) == (0, False, False) and isnan(none.median)


def test_equal_values_are_an_interval_of_no_width() -> None:
    found = stats.interval([3.0] * 8)
    assert (found.low, found.high, found.half_width) == (3, 3, 0)


def test_the_interval_covers_a_skewed_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    true = np.log(2)  # median of the exponential distribution
    for n in (3, 7, 10):
        found = [stats.interval(list(rng.exponential(size=n))) for _ in range(3000)]
        held = np.mean([each.low <= true <= each.high for each in found])
        assert held == pytest.approx(found[0].coverage, abs=0.025)


@pytest.mark.parametrize(
    ("n", "m", "counts"),
    [(1, 1, [1, 1]), (2, 2, [1, 1, 2, 1, 1]), (3, 2, [1, 1, 2, 2, 2, 1, 1]), (3, 3, [1, 1, 2, 3, 3, 3, 3, 2, 1, 1])],
)
def test_rank_sums_are_those_of_mann_and_whitney(n: int, m: int, counts: list[int]) -> None:
    assert list(stats.rank_sums(n, m)) == counts


def test_rank_sums_of_many() -> None:
    assert stats.rank_sums(12, 9).sum() == comb(21, 9)


@pytest.mark.parametrize(
    ("n", "rank", "coverage"),
    # P(U <= 0) = 1/20; 1/70; P(U <= 2) = 4/252; P(U <= 5) = 19/924: qwilcox(0.025, n, n) of R is 0, 1, 3, 6
    [(3, 1, 1 - 2 / 20), (4, 1, 1 - 2 / 70), (5, 3, 1 - 2 * 4 / 252), (6, 6, 1 - 2 * 19 / 924)],
)
def test_ratio_of_two_samples_is_that_of_the_rank_sum_test(n: int, rank: int, coverage: float) -> None:
    ones = [10.0 + 3 * value for value in range(n)]
    others = [7.0 + value for value in range(n)]
    quotients = sorted(one / other for one in ones for other in others)
    found = stats.ratio(ones, others)
    assert (found.low, found.high) == (quotients[rank - 1], quotients[-rank])
    assert found.median == pytest.approx(np.median(quotients))
    assert found.coverage == pytest.approx(coverage)


def test_ratio_turned_round_is_the_inverse() -> None:
    ones, others = [3.0, 5.0, 9.0, 4.0, 8.0], [2.0, 2.5, 1.9, 4.1]
    found, inverse = stats.ratio(ones, others), stats.ratio(others, ones)
    assert (found.low, found.high) == pytest.approx((1 / inverse.high, 1 / inverse.low))


def test_ratio_covers_the_factor_between_two_distributions() -> None:
    rng = np.random.default_rng(2)
    found = [stats.ratio(list(3 * rng.lognormal(size=5)), list(rng.lognormal(size=6))) for _ in range(2000)]
    held = np.mean([each.low <= 3 <= each.high for each in found])
    assert held == pytest.approx(found[0].coverage, abs=0.02)


def test_ratio_of_one_value_or_none() -> None:
    assert stats.ratio([], [1.0]).n == 0
    found = stats.ratio([6.0], [2.0, 3.0])
    assert (found.n, found.median, found.known) == (1, 2.5, False)


def test_paired_ratio_is_the_interval_of_the_quotients() -> None:
    found = stats.paired_ratio([2.0, 4.0, 9.0], [1.0, 4.0, 3.0])
    assert (found.median, found.low, found.high, found.coverage) == (2, 1, 3, 0.75)


def test_caution_says_what_n_and_width_cannot_support() -> None:
    assert stats.caution(stats.interval([])) == ""
    assert stats.caution(stats.interval([1.0])) == "one repeat: no interval"
    assert stats.caution(stats.interval([100.0, 101.0, 102.0])) == "3 repeats: the interval covers 75 %, not 95 %"
    assert stats.caution(stats.interval([100.0] * 5 + [101.0])) == ""
    assert stats.caution(stats.interval([100.0] * 5 + [140.0])) == "rough: ±40 %"
