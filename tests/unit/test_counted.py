"""Whether a counted CPU kept pace with time. Known answers are sums of the seconds given."""

from __future__ import annotations

import pytest

from tunnel_lab import counted, emulation
from tunnel_lab.records import Clock, Clocks


def clocks(before_ms: float, after_ms: float, elapsed_s: float = 10.0, worst_ms: float = 0) -> Clocks:
    """The server's clock, so far behind before and after a repeat."""
    return Clocks(
        before={"server": Clock(at_s=100.0, lateness_ms=before_ms)},
        after={"server": Clock(at_s=100.0 + elapsed_s, lateness_ms=after_ms)},
        worst={"server": worst_ms},
    )


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "pace", "wrong"),
    [
        (0, 0, 1.0, None),
        (10, 150, 0.986, None),  # lost 140 ms in 10 s
        (0, 210, 0.979, "had 0.979 seconds in a second, not 0.98 to 1.02"),
        (240, 30, 1.021, "had 1.021 seconds in a second"),  # it ran faster than it should, to catch up
        (260, 200, 1.006, "was 260 ms behind, more than 250"),
    ],
)
def test_pace_is_the_hosts_seconds_in_a_second(
    before_ms: float, after_ms: float, pace: float, wrong: str | None
) -> None:
    seen = clocks(before_ms, after_ms)
    assert counted.columns(seen) == {
        "server.cpu_pace": pytest.approx(pace),
        "server.cpu_lateness_ms": max(before_ms, after_ms),
    }
    found = counted.problems(seen)
    assert len(found) == (wrong is not None)
    assert wrong is None or wrong in found[0]


def test_over_a_moment_a_pace_says_nothing() -> None:
    assert "server.cpu_pace" not in counted.columns(clocks(0, 40, elapsed_s=0.4))


def test_clock_that_was_not_read_again_fails_the_repeat() -> None:
    (said,) = counted.problems(Clocks(before={"client": Clock(at_s=1, lateness_ms=0)}))
    assert said == "the clock of the counted CPU of the client was not watched to the end of the repeat"
    assert counted.problems(Clocks()) == []


@pytest.mark.parametrize(
    ("server", "client", "both"),
    [
        (None, None, None),
        ("free-running", "free-running", "free-running"),
        ("counted 62.5 MIPS", None, "server counted 62.5 MIPS"),
        ("counted 62.5 MIPS", "free-running", "server counted 62.5 MIPS, client free-running"),
    ],
)
def test_emulation_of_a_run_names_each_host_where_they_differ(
    server: str | None, client: str | None, both: str | None
) -> None:
    environment = {
        host: {"cpu_emulation": kind} if kind else {} for host, kind in (("server", server), ("client", client))
    }
    assert emulation.of_hosts(environment) == both
    assert emulation.is_withheld(both, "goodput_bit_s") == ("free-running" in (both or ""))
    assert not emulation.is_withheld(both, "wire_overhead")


def test_lateness_that_is_made_good_before_the_end_fails_the_repeat() -> None:
    (said,) = counted.problems(clocks(0, 0, worst_ms=2000))
    assert said == "the counted CPU of the server was 2000 ms behind, more than 250"
