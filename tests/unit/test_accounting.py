"""Every sentence of the accounting has a record that it is true of, and one that fails by it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, get_args

import pytest
from builders import HOSTS, LINK, START, command, counted, looks, one_after_the_other, record, stamp

from tunnel_lab import accounting
from tunnel_lab.parsing import Direction, Measurement
from tunnel_lab.records import Host, LinkSeen, Record

SIZE = 1_000_000
TUN = "tun0"
WAYS: tuple[Direction, Direction] = ("server_to_client", "client_to_server")
SENDS: dict[Direction, Host] = {"server_to_client": "server", "client_to_server": "client"}
RECEIVES: dict[Direction, Host] = {"server_to_client": "client", "client_to_server": "server"}
PLACES = [
    *((way, SENDS[way], "tx_bytes") for way in WAYS),
    *((way, RECEIVES[way], "rx_bytes") for way in WAYS),
]
"""Direction, host, and the counter there that must have counted the direction's payload."""
Place = tuple[Direction, Host, str]


def figures(*directions: Direction, size: int = SIZE) -> list[Measurement]:
    return [Measurement(direction=way, payload_bytes=size, duration_s=1, goodput_bit_s=size * 8) for way in directions]


def made(interface: str | None = TUN, compresses: bool = False, passed: int = SIZE, **cell: Any) -> Record:
    """A record of two commands while `passed` bytes of payload went each way, over the link and through a tunnel."""
    commands, end = one_after_the_other([command("server_to_client", ""), command("client_to_server", "")])
    before, after = looks(dict.fromkeys(WAYS, passed), [LINK, TUN, "lo"], START, end)
    good = record("iperf3", {})
    changed = good.cell.model_copy(update={"interface": interface, "compresses": compresses, **cell})
    return good.model_copy(update={"cell": changed, "commands": commands, "before": before, "after": after})


def set_counter(given: Record, host: Host, interface: str, counter: str, rose_by: int) -> Record:
    """Return the record with a counter that rose by so much over the repeat."""
    more = given.before[host].counters[interface][counter] + rose_by - given.after[host].counters[interface][counter]
    return given.model_copy(
        update={"after": {**given.after, host: counted(given.after[host], interface, counter, more)}}
    )


def test_what_is_accounted_for_is_fine() -> None:
    assert get_args(Direction) == WAYS
    for interface in (TUN, None):
        assert accounting.problems(made(interface), figures(*WAYS)) == []


@pytest.mark.parametrize("look", ["before", "after"])
@pytest.mark.parametrize("missing", [*HOSTS, "both"])
def test_both_hosts_were_looked_at_before_and_after(look: str, missing: str) -> None:
    given = made()
    kept = {host: seen for host, seen in getattr(given, look).items() if missing not in ("both", host)}
    for change in ({look: kept}, {"before": kept, "after": kept}):
        said = accounting.problems(given.model_copy(update=change), figures(*WAYS))
        assert said == ["the hosts' counters were not taken before and after"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("interface", [LINK, TUN])
def test_counters_of_sender_and_receiver_hold_the_payload(interface: str, place: Place) -> None:
    way, host, counter = place
    enough = set_counter(made(), host, interface, counter, SIZE)
    assert accounting.problems(enough, figures(way)) == []
    short = set_counter(made(), host, interface, counter, SIZE - 1)
    said = f"{interface} of the {host} counted {SIZE - 1} {counter}, the payload is {SIZE} bytes"
    assert accounting.problems(short, figures(way)) == [said]
    assert accounting.problems(short, figures(*(other for other in WAYS if other != way))) == []


@pytest.mark.parametrize("place", PLACES)
def test_interface_without_a_tunnel_is_the_link_alone(place: Place) -> None:
    way, host, counter = place
    through_link = set_counter(made(interface=None), host, TUN, counter, 0)
    assert accounting.problems(through_link, figures(way)) == []
    aside = set_counter(made(interface=None), host, LINK, counter, 0)
    assert len(accounting.problems(aside, figures(way))) == 1


@pytest.mark.parametrize("place", PLACES)
def test_traffic_that_went_around_the_tunnel_is_seen(place: Place) -> None:
    way, host, counter = place
    around = set_counter(made(), host, TUN, counter, 200)
    assert accounting.problems(around, figures(way)) == [
        f"tun0 of the {host} counted 200 {counter}, the payload is {SIZE} bytes"
    ]


@pytest.mark.parametrize("place", PLACES)
def test_compressing_tunnel_may_send_less_but_not_nothing(place: Place) -> None:
    way, host, counter = place
    for interface in (TUN, None):
        for rose_by, fine in ((SIZE // 100, True), (1, True), (0, False), (-1, False)):
            given = set_counter(made(interface, compresses=True), host, LINK, counter, rose_by)
            said = [f"{LINK} of the {host} counted {rose_by} {counter}, the payload is {SIZE} bytes"]
            assert accounting.problems(given, figures(way)) == ([] if fine else said)
    # what goes into the tunnel is not compressed yet
    inside = set_counter(made(compresses=True), host, TUN, counter, SIZE - 1)
    assert len(accounting.problems(inside, figures(way))) == 1


def test_counters_are_compared_with_those_of_before() -> None:
    """Bytes that were counted earlier are not this repeat's."""
    given = made(passed=0)
    old = {**given.before, "server": counted(given.before["server"], LINK, "tx_bytes", 5 * SIZE)}
    new = {**given.after, "server": counted(given.after["server"], LINK, "tx_bytes", 5 * SIZE)}
    given = given.model_copy(update={"before": old, "after": new})
    assert f"{LINK} of the server counted 0 tx_bytes" in accounting.problems(given, figures("server_to_client"))[0]


def test_figures_of_one_direction_add_up() -> None:
    twice = figures("server_to_client", "server_to_client", size=SIZE * 3 // 5)
    said = accounting.problems(made(), twice)
    assert len(said) == 4
    assert all("the payload is 1200000 bytes" in each for each in said)


@pytest.mark.parametrize("look", ["before", "after"])
@pytest.mark.parametrize("interface", [LINK, TUN])
@pytest.mark.parametrize("host", HOSTS)
def test_interface_that_was_not_there_accounts_for_nothing(look: str, interface: str, host: Host) -> None:
    given = made()
    seen = getattr(given, look)
    counters = {name: found for name, found in seen[host].counters.items() if name != interface}
    gone = {**seen, host: seen[host].model_copy(update={"counters": counters})}
    said = accounting.problems(given.model_copy(update={look: gone}), figures(*WAYS))
    assert [each.partition(",")[0] for each in said] == [
        f"{interface} of the {host} counted None {'tx_bytes' if SENDS[way] == host else 'rx_bytes'}" for way in WAYS
    ]


def test_link_whose_interface_is_not_known_accounts_for_nothing() -> None:
    given = made(interface=None).model_copy(update={"link": LinkSeen(interfaces={"server": LINK})})
    [said] = accounting.problems(given, figures("server_to_client"))
    assert "of the client counted None rx_bytes" in said


@pytest.mark.parametrize(
    ("which", "shift_s", "fine"),
    [(0, -0.75, True), (0, -0.8, False), (0, -3600, False), (1, 0.75, True), (1, 0.8, False), (1, 3600, False)],
)
def test_commands_run_between_the_looks_at_the_client(which: int, shift_s: float, fine: bool) -> None:
    """The client was looked at 0.75 s before the first command and after the last."""
    given = made()
    commands = list(given.commands)
    started = datetime.fromisoformat(commands[which].started_at) + timedelta(seconds=shift_s)
    commands[which] = commands[which].model_copy(update={"started_at": stamp(started)})
    said = accounting.problems(given.model_copy(update={"commands": commands}), figures(*WAYS))
    name = commands[which].name
    assert said == ([] if fine else [f"{name} ran at another time than between the looks at the client"])


def test_only_the_clients_clock_is_asked() -> None:
    """The hosts' clocks may be apart; the commands' times are the client's."""
    given = made()
    cases: tuple[tuple[Host, bool], ...] = (("server", True), ("client", False))
    for host, fine in cases:
        change = {
            look: {**seen, host: seen[host].model_copy(update={"at": seen[host].at + 7200})}
            for look, seen in (("before", given.before), ("after", given.after))
        }
        assert (accounting.problems(given.model_copy(update=change), figures(*WAYS)) == []) is fine


def test_all_that_is_wrong_is_told() -> None:
    given = made(passed=0)
    late = [each.model_copy(update={"elapsed_s": 999.0}) for each in given.commands]
    said = accounting.problems(given.model_copy(update={"commands": late}), figures(*WAYS))
    assert len(said) == 2 + 2 * 2 * 2, "commands, and directions x ends x interfaces"


def test_how_far_a_counter_rose() -> None:
    given = set_counter(made(), "client", TUN, "rx_bytes", 5)
    assert accounting.passed_bytes(given, "client", TUN, "rx_bytes") == 5
    for interface, counter in ((None, "rx_bytes"), ("tun9", "rx_bytes"), (TUN, "rx_frogs")):
        assert accounting.passed_bytes(given, "client", interface, counter) is None
