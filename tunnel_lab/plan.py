"""From choices to a flat, ordered list of what to measure. Pure: the same choices give the same plan."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import Field

from tunnel_lab import gate
from tunnel_lab.choices import Choices
from tunnel_lab.errors import LabError, closest
from tunnel_lab.manifests import Catalog, Settings, Strict, VariantName
from tunnel_lab.stats import FEWEST

BARE = ("none", "bare", "iperf3")
"""The cell that opens and closes every run: the link without a tunnel."""


class Cell(Strict):
    """tunnel x variant x workload, with everything resolved that the hosts need to run it."""

    id: str
    tunnel: VariantName  # names that are parts of paths, also in a stored run from elsewhere
    variant: VariantName
    workload: VariantName
    tunnel_settings: Settings
    override: Settings = Field(default_factory=dict)
    """The settings that the user changed for this run; part of what a result must be labelled with."""
    insecure: str | None = None
    needs: list[str] = Field(default_factory=list)
    """What both hosts must be able to do, as the tunnel's manifest calls it."""
    params: Settings
    service_port: int
    target_address: str
    target_port: int
    interface: str | None = None
    units: dict[Literal["server", "client"], list[str]]
    """The units that carry the tunnel and serve the workload; their logs go into the record."""
    tunnel_units: dict[Literal["server", "client"], str] = Field(default_factory=dict)
    """The one of them that carries the tunnel, on each host that has one."""
    configuration: dict[Literal["server", "client"], list[str]] = Field(default_factory=dict)
    """The tunnel's files on each host that go into the record as they are."""
    early: bool = False
    """Whether the workload has something to do before the tunnel is brought up."""
    fresh_units: list[str] = Field(default_factory=list)
    """The server's units that are started anew before each repeat."""
    done_log: str | None = None
    """What the server's units log when they have counted the whole repeat."""
    compresses: bool
    """Whether less may travel over the link than the payload."""
    timeout_s: float


class Step(Strict):
    """One repeat of one cell at its place in the run."""

    order: int
    """1 for the first step of the run."""
    cell: str
    repeat: int
    """1 ... n; 0 and n + 1 are the bare link before and after everything else."""
    sampled: bool = False
    """Whether both hosts are sampled meanwhile."""


class Plan(Strict):
    """All cells of a run and the order in which their repeats are measured."""

    profile: str
    seed: int
    repeats: int
    """Of each cell; with a precision, the most that there can be."""
    precision: float | None = None
    """The relative half-width of an interval at which a cell needs no further repeat; None: all are measured."""
    cells: dict[str, Cell]
    steps: list[Step]

    @property
    def tunnels(self) -> dict[str, dict[str, Settings]]:
        """{tunnel: {variant: settings}} of the planned cells: what has to be installed."""
        found: dict[str, dict[str, Settings]] = {}
        for cell in self.cells.values():
            found.setdefault(cell.tunnel, {})[cell.variant] = cell.tunnel_settings
        return found

    @property
    def workloads(self) -> dict[str, Settings]:
        """{workload: parameters} of the planned cells."""
        return {cell.workload: cell.params for cell in self.cells.values()}


def describe(plan: Plan, catalog: Catalog) -> str:
    """Return the plan as text: its cells with what differs from the tunnel's defaults, then the order."""
    repeats = f"{plan.repeats} repeats"
    if plan.precision:
        repeats = f"{FEWEST} to {plan.repeats} repeats, until the interval is within ±{plan.precision:.2g}"
    lines = [
        f"profile {plan.profile}, {repeats}, seed {plan.seed}: "
        f"{'at most ' if plan.precision else ''}{len(plan.steps)} measurements of {len(plan.cells)} cells",
        "",
    ]
    for cell in plan.cells.values():
        lines.append(cell.id + (f"   INSECURE: {cell.insecure}" if cell.insecure else ""))
        lines += [f"    needs: {need}" for need in cell.needs]
        defaults = catalog.tunnels[cell.tunnel].defaults
        chosen = {key: value for key, value in cell.tunnel_settings.items() if value != defaults[key]}
        for label, settings in (("tunnel", chosen), ("override", cell.override), ("workload", cell.params)):
            if settings:
                lines.append(f"    {label}: " + " ".join(f"{key}={value}" for key, value in settings.items()))
    lines += ["", "order:"]
    lines += [f"  {step.order:>4}  {step.cell} r{step.repeat}" for step in plan.steps]
    return "\n".join(lines)


def cell_ids(catalog: Catalog) -> list[str]:
    """Return the id of every cell that could be measured, sorted."""
    return sorted(
        f"{tunnel.name}.{variant}.{workload}"
        for tunnel in catalog.tunnels.values()
        for variant in tunnel.variants
        for workload in catalog.workloads
    )


def select(patterns: list[str], ids: list[str]) -> list[str]:
    """Return the ids that match any glob of `patterns`; a glob that matches nothing is a LabError."""
    chosen = set()
    for pattern in patterns:
        matched = [cell for cell in ids if fnmatchcase(cell, pattern)]
        if not matched:
            raise LabError(
                f"lab_select: '{pattern}' matches no cell. A cell is tunnel.variant.workload. "
                f"These exist:\n  " + "\n  ".join(ids)
            )
        chosen.update(matched)
    return [cell for cell in ids if cell in chosen]


def build(catalog: Catalog, choices: Choices, server_address: str) -> Plan:
    """Multiply the choices out. `server_address` is the server's end of the link.

    Raises LabError naming the variable and what exists when a choice names something unknown.
    """
    profile = choices.profile
    own = [f"{tunnel}.{variant}.*" for tunnel, variants in choices.lab_variants.items() for variant in variants]
    ids = select(choices.lab_select or profile.select + own, cell_ids(catalog))
    _known("lab_override", choices.lab_override, catalog.tunnels)
    params = {
        name: _params(catalog, name, {**profile.params.get(name, {}), **choices.lab_params.get(name, {})})
        for name in {*catalog.workloads, *choices.lab_params, *profile.params}
    }
    cells = {}
    bare = ".".join(BARE)
    for cell_id in sorted({*ids, bare}):
        tunnel, variant, workload = cell_id.split(".")
        parts = (tunnel, variant, workload)
        cells[cell_id] = _cell(catalog, choices, parts, params[workload], server_address)
    auto = choices.lab_repeats == "auto"
    repeats = choices.lab_repeats_max if choices.lab_repeats == "auto" else choices.lab_repeats or profile.repeats
    return Plan(
        profile=choices.lab_profile,
        seed=choices.lab_seed,
        repeats=repeats,
        precision=choices.lab_precision if auto else None,
        cells=cells,
        steps=_steps(ids, bare, repeats, choices),
    )


def _steps(ids: list[str], bare: str, repeats: int, choices: Choices) -> list[Step]:
    """Interleave: every cell once in a shuffled order, then all again; the bare link first and last."""
    shuffle = random.Random(choices.lab_seed)
    order = [(bare, 0)]
    for repeat in range(1, repeats + 1):
        order += [(cell, repeat) for cell in shuffle.sample(ids, len(ids))]
    order.append((bare, repeats + 1))
    return [
        Step(order=n, cell=cell, repeat=repeat, sampled=_is_sampled(choices, repeat))
        for n, (cell, repeat) in enumerate(order, start=1)
    ]


def _is_sampled(choices: Choices, repeat: int) -> bool:
    return repeat % 2 == 1 if choices.lab_sampler == "alternate" else bool(choices.lab_sampler)


def _cell(
    catalog: Catalog, choices: Choices, parts: tuple[str, str, str], params: Settings, server_address: str
) -> Cell:
    tunnel, workload, variant = catalog.tunnels[parts[0]], catalog.workloads[parts[2]], parts[1]
    override = choices.lab_override.get(tunnel.name, {})
    settings = tunnel.resolve(variant, override)
    served: dict[Literal["server", "client"], list[str]] = {
        "server": workload.server_units,
        "client": workload.client_units,
    }
    carriers = {host: unit.format(variant=variant) for host, unit in tunnel.units.items()}
    return Cell(
        id=".".join(parts),
        tunnel=tunnel.name,
        variant=variant,
        workload=workload.name,
        tunnel_settings=settings,
        override=override,
        insecure=tunnel.insecure(variant),
        needs=[need.what for need in tunnel.needs if gate.expression(need.when, settings)],
        params=params,
        service_port=workload.service_port,
        target_address=tunnel.target.address.format(server_address=server_address),
        target_port=tunnel.target.port or workload.service_port,
        interface=tunnel.interface,
        units={host: [*filter(None, [carriers.get(host)]), *units] for host, units in served.items()},
        tunnel_units=carriers,
        configuration={
            host: [path.format(variant=variant) for path in paths] for host, paths in tunnel.configuration.items()
        },
        early=workload.early,
        fresh_units=workload.server_units if workload.fresh else [],
        done_log=workload.done_log,
        compresses=bool(gate.expression(tunnel.compresses, settings)),
        timeout_s=choices.lab_timeout_s or float(str(gate.expression(str(workload.timeout_s), params))),
    )


def _params(catalog: Catalog, name: str, given: dict[str, Any]) -> Settings:
    _known("lab_params", {name: given}, catalog.workloads)
    known = catalog.workloads[name].params
    for key, value in given.items():
        if key not in known:
            raise LabError(f"lab_params.{name}: unknown parameter '{key}'.{closest(key, known)}")
        catalog.workloads[name].check_value(key, value)
    params = {**known, **given}
    for rule in catalog.workloads[name].requires:
        if not gate.expression(rule, params):
            found = ", ".join(f"{key}={value}" for key, value in params.items() if key in rule.split())
            raise LabError(f"lab_params.{name}: {rule} must hold; it has {found}.")
    return params


def _known(variable: str, given: dict[str, Any], known: dict[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise LabError(f"{variable}: '{name}' does not exist.{closest(name, known)}")
