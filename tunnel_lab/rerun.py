"""`lab_rerun`: the plan of a stored run, to be measured again on these hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunnel_lab import bundle, tables
from tunnel_lab.choices import Choices
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import ROOT
from tunnel_lab.plan import Cell, Plan
from tunnel_lab.records import Run

HERE = (
    *("lab_name", "lab_provider", "lab_image"),
    *("lab_ttl_minutes", "lab_keep", "lab_confirm_cost", "lab_wait_for_ssh"),
)
"""What the inventory says of the hosts here, whatever the stored run was made on."""
OF_THE_PLACE = {"target_address", "configuration", "insecure"}
"""What of a cell may differ: addresses are the inventory's, and the others do not change what is measured."""


def stored(where: str) -> Run:
    """Return the run that `lab_rerun` names: a run directory, its name below results/, or a bundle."""
    given = Path(where).expanduser()
    for path in (given, ROOT / given, ROOT / "results" / given):
        if path.exists():
            with bundle.run_directory(path) as directory:
                return tables.read_run(directory)
    raise LabError(f"lab_rerun: {where}: no such run directory or bundle.")


def variables(run: Run, given: dict[str, Any]) -> dict[str, Any]:
    """Return the lab_* variables with which the present lab plans what `run` planned; `given` are those of here.

    The stored ones win, but for those of the hosts. Raises LabError when the lab does not have one of them any more,
    or when only one of the two has an emulated link.
    """
    unknown = sorted(name for name in run.choices if name not in Choices.model_fields)
    if unknown:
        raise _changed(run, f"the variable {unknown[0]}", run.choices[unknown[0]], "none of this name")
    again = {name: value for name, value in run.choices.items() if name not in HERE}
    link = run.choices.get("lab_link")
    if bool(link) != bool(given.get("lab_link")):
        kinds = ("an emulated link", "a real network")
        old, new = kinds if link else kinds[::-1]
        raise LabError(f"lab_rerun: run {run.run_id} was made over {old}, the inventory has {new}. Choose with -i.")
    return {
        **given,
        **again,
        "lab_profile": run.plan.profile,
        "lab_select": _selected(run.plan),
        "lab_repeats": "auto" if run.choices.get("lab_repeats") == "auto" else run.plan.repeats,
        "lab_params": run.plan.workloads,
        "lab_seed": run.plan.seed,
        "lab_rerun": run.run_id,
    }


def _selected(plan: Plan) -> list[str]:
    """Return the cells that were chosen: all but a bare link that was measured only before and after everything."""
    return sorted({step.cell for step in plan.steps[1:-1]})


def check(run: Run, made: Plan) -> None:
    """Raise a LabError unless `made` is the plan of the stored run, apart from where the hosts are.

    A field that the stored run's lab did not have yet is not compared.
    """
    for name, cell in run.plan.cells.items():
        if name not in made.cells:
            raise _changed(run, f"the cell {name}", "measured", "not planned")
        for setting, old, new in _different(cell, made.cells[name]):
            raise _changed(run, f"{name}: {setting}", old, new)
    for what in ("profile", "seed", "repeats", "precision"):
        old, new = getattr(run.plan, what, None), getattr(made, what, None)
        if old != new:
            raise _changed(run, what, old, new)
    for before, after in zip(run.plan.steps, made.steps, strict=False):
        if (before.cell, before.repeat) != (after.cell, after.repeat):
            old, new = (f"{step.cell} r{step.repeat}" for step in (before, after))
            raise _changed(run, f"measurement {before.order}", old, new)
    if len(run.plan.steps) != len(made.steps):
        raise _changed(run, "the number of measurements", len(run.plan.steps), len(made.steps))


def _different(old: Cell, new: Cell) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted(old.model_fields_set - OF_THE_PLACE):
        one, other = getattr(old, name), getattr(new, name)
        if isinstance(one, dict) and isinstance(other, dict):
            for key in {**one, **other}:
                if one.get(key) != other.get(key):
                    yield f"{name}.{key}", one.get(key), other.get(key)
        elif one != other:
            yield name, one, other


def _changed(run: Run, what: str, old: Any, new: Any) -> LabError:
    commit = run.environment.get("controller", {}).get("git_commit")
    checkout = f"git checkout {commit.removesuffix('-dirty')}" if commit else "check out the lab of that time"
    return LabError(
        f"lab_rerun: the lab has changed since run {run.run_id}: {what}: it was {old!r}, now it is {new!r}. "
        f"To measure the same again: {checkout}."
    )
