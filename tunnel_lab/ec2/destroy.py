"""Remove everything that carries the lab's tag, in every region that it was ever in, and look whether it is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from tunnel_lab.ec2 import api
from tunnel_lab.ec2.kinds import KINDS, Kind, Resource
from tunnel_lab.errors import LabError

Say = Callable[[str], None]
POLL_S = 3.0
PASSES = 3


class Item(NamedTuple):
    """One resource, and why it is still there."""

    region: str
    kind: str
    id: str
    reason: str = ""


class Outcome(NamedTuple):
    """What has become of a region."""

    removed: list[Item]
    left: list[Item]
    problem: str = ""
    """Why the region could not be looked at, so that nothing is known of it."""


def destroy(lab: str, regions: Iterable[str], say: Say) -> list[Item]:
    """Remove what `lab` has in `regions`, all at once; return what was removed.

    A LabError lists what is left, and the regions that could not be looked at. Safe to repeat.
    """
    names = sorted(set(regions))
    with ThreadPoolExecutor(max_workers=max(1, len(names))) as pool:
        outcomes = list(pool.map(lambda region: _region(lab, region, say), names))
    left = [item for outcome in outcomes for item in outcome.left]
    unseen = [outcome.problem for outcome in outcomes if outcome.problem]
    if left or unseen:
        lines = [f"{item.region}: {item.kind} {item.id}" + f": {item.reason}" * bool(item.reason) for item in left]
        raise LabError(
            f"the lab '{lab}' is not gone from AWS, and what is left may cost money:\n  "
            + "\n  ".join([*lines, *unseen])
            + "\nMend that and run playbooks/teardown.yml again."
        )
    return [item for outcome in outcomes for item in outcome.removed]


def _region(lab: str, region: str, say: Say) -> Outcome:
    removed: list[Item] = []
    reasons: dict[str, str] = {}
    try:
        client = api.client(region)
        left: list[Item] = []
        for _ in range(PASSES):
            for kind in KINDS:
                removed += [Item(region, kind.name, gone) for gone in clear(kind, client, lab, reasons, say)]
            left = [
                Item(region, kind.name, resource[kind.id], reasons.get(resource[kind.id], ""))
                for kind in KINDS
                for resource in kind.find(client, lab)
            ]
            if all(item.reason for item in left):  # what was made late is listed late: it has not been tried yet
                break
    except api.ERRORS as error:
        return Outcome(removed, [], f"{region}: could not be looked at: {api.said(error)}")
    return Outcome(removed, left)


def clear(kind: Kind, client: Any, lab: str, reasons: dict[str, str], say: Say) -> list[str]:
    """Delete all of one kind and wait until they are gone, at most `kind.wait_s`; return the ids that were asked to go.

    What cannot be deleted is left, with AWS's words in `reasons`.
    """
    end = time.monotonic() + kind.wait_s
    asked: set[str] = set()
    refused: set[str] = set()
    while left := [each for each in kind.find(client, lab) if each[kind.id] not in refused]:
        fresh = [each for each in left if each[kind.id] not in asked]
        if fresh and not asked:
            say(f"{client.meta.region_name}: removing {len(left)} {kind.name}{'s' * (len(left) > 1)}")
        for step in filter(None, (kind.loosen, kind.delete)):
            failed = {each[kind.id]: error for each in fresh if (error := _attempt(step, client, each))}
            reasons |= {name: api.said(error) for name, error in failed.items()}
            refused |= {name for name, error in failed.items() if api.code(error) in api.REFUSED}
            fresh = [each for each in fresh if each[kind.id] not in failed]
        asked |= {each[kind.id] for each in fresh}
        if time.monotonic() > end:
            break
        if len(asked) < len(left) or not fresh:
            time.sleep(POLL_S)
    return sorted(asked)


def _attempt(step: Callable[[Any, Resource], Any], client: Any, resource: Resource) -> Exception | None:
    """Return why it did not work; that it is gone already will show when it is not listed any more."""
    try:
        step(client, resource)
    except api.ERRORS as error:
        failure: Exception = error
        return failure
    return None
