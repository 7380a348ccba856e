"""What differs between the circumstances of two runs: link, hosts, packages, kernel settings, choices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from typing import Any

from tunnel_lab.choices import Choices
from tunnel_lab.plan import Plan
from tunnel_lab.records import Run

CHOICES = ("lab_override", "lab_timeout_s", "lab_image", "lab_precision")
"""What of the choices is neither in the plan nor in what was found on the hosts."""
HOSTS = ("server", "client")
MAPPINGS = {"packages": "package", "sysctls": "sysctl"}
"""What a host's environment holds as mappings, and what one entry is called."""
SAME = 0.01
"""Two measurements of the link that differ by less are the same link."""
LONGEST = 60
"""How much of a value is told."""

Facts = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One thing that two runs do not have in common, in words."""

    what: str
    base: str
    other: str

    def __str__(self) -> str:
        """`link rtt_ms: 80 -> 20`"""
        return f"{self.what}: {self.base} -> {self.other}"


def differences(base: Run, other: Run) -> list[Difference]:
    """Return everything in which the circumstances of two runs differ, nothing when they are the same."""
    ones, others = _facts(base), _facts(other)
    told = [
        Difference(what, _short(ones.get(what)), _short(others.get(what)))
        for what in [*ones, *(name for name in others if name not in ones)]
        if ones.get(what) != others.get(what)
    ]
    return [*_as_measured(base, other), *_both_hosts(told), *_settings(base.plan, other.plan)]


def _facts(run: Run) -> Facts:
    link = run.link.setting.resolved() if run.link.setting else {}
    controller = dict(run.environment.get("controller", {}))
    facts: Facts = {
        "lab": run.lab,
        "provider": run.provider,
        **{f"link {name}": value for name, value in link.items() if name != "emulator"},
        "link emulator": run.link.emulator,
        "git commit": controller.pop("git_commit", None),
        "lab_profile": run.plan.profile,
        "lab_seed": run.plan.seed,
        "lab_repeats": "auto" if run.choices.get("lab_repeats") == "auto" else run.plan.repeats,
        "lab_sampler": _sampler(run.plan),
    }
    for name in CHOICES:
        default = Choices.model_fields[name].get_default(call_default_factory=True)
        facts[name] = _plain(run.choices.get(name, default))
    for host in HOSTS:
        facts |= {f"{host} {what}": value for what, value in _environment(run.environment.get(host, {}))}
    return facts | {f"controller {what}": value for what, value in _environment(controller)}


def _environment(environment: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in environment.items():
        if name in MAPPINGS and isinstance(value, dict):
            for key, each in value.items():
                yield f"{MAPPINGS[name]} {key}", " ".join(each.split()) if isinstance(each, str) else each
        elif isinstance(value, str | int | float):
            yield name, value


def _sampler(plan: Plan) -> Any:
    sampled = {step.sampled for step in plan.steps}
    return "alternate" if len(sampled) > 1 else True in sampled


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def _as_measured(base: Run, other: Run) -> Iterator[Difference]:
    """Yield what was measured of the link, where it differs by more than two measurements of one link do."""
    for what, unit, scale, one, two in (
        ("round trip", "ms", 1, base.link.measured_rtt_ms, other.link.measured_rtt_ms),
        ("bare TCP", "Mbit/s", 1e6, base.link.measured_goodput_bit_s, other.link.measured_goodput_bit_s),
    ):
        shown = [_short(None) if each is None else f"{each / scale:.4g} {unit}" for each in (one, two)]
        if (one is None) != (two is None) or (one and two and not isclose(one, two, rel_tol=SAME)):
            yield Difference(f"link {what} as measured", *shown)


def _both_hosts(told: list[Difference]) -> Iterator[Difference]:
    """Yield differences, those that are the same on both hosts as one."""
    server, client = (f"{host} " for host in HOSTS)
    for each in told:
        twin, name = each.what.partition(" ")[::2]
        if f"{twin} " == server and Difference(client + name, each.base, each.other) in told:
            yield Difference(f"server and client {name}", each.base, each.other)
        elif f"{twin} " != client or Difference(server + name, each.base, each.other) not in told:
            yield each


def _settings(base: Plan, other: Plan) -> Iterator[Difference]:
    """Yield the settings in which a variant that both measured differs, the variants with the same change as one."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for tunnel, variants in base.tunnels.items():
        for variant, settings in variants.items():
            there = other.tunnels.get(tunnel, {}).get(variant, settings)
            for key in {**settings, **there}:
                if settings.get(key) != there.get(key):
                    change = (_short(settings.get(key)), _short(there.get(key)))
                    found.setdefault((tunnel, key, *change), []).append(variant)
    for (tunnel, key, one, two), names in found.items():
        yield Difference(f"{tunnel} {key} of {', '.join(names)}", one, two)


def _short(value: Any) -> str:
    """Return a value in at most LONGEST characters."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
