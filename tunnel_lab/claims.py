"""Published figures: `claims/<source>.yml`, one file for each publication. There is no other list of them."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection
from math import inf
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from tunnel_lab import units
from tunnel_lab.errors import LabError, closest, from_validation
from tunnel_lab.manifests import ROOT, Strict, read_yaml
from tunnel_lab.parsing import Direction

CLAIMS = ROOT / "claims"
EXPLAINED = "gap_explained_by_overhead"
"""The quantity of a cause that is made of two cells; see overhead.explained."""
TOLERANCE = 0.25
"""Of a claim that states none: another machine, another decade, the same sentence."""

Band = tuple[float, float]


class Condition(Strict):
    """What a measurement must be like for the claim to speak of it."""

    at_least: float | None = None
    at_most: float | None = None
    equals: str | float | None = None
    because: str
    """How one knows, and why it matters."""

    @model_validator(mode="after")
    def _says_something(self) -> Condition:
        if self.at_least is None and self.at_most is None and self.equals is None:
            raise ValueError("needs at_least, at_most or equals")
        return self


class Figure(Strict):
    """A number as it was printed."""

    printed: str
    value: float = Field(gt=0, allow_inf_nan=False)
    unit: str
    rounding: float = Field(default=0, ge=0, allow_inf_nan=False)
    """How far the true value may be from the printed one, in its unit: half of the last place, or as the text says."""
    amount_bytes: tuple[float, float] | None = None
    """The least and the most that a printed duration may have moved; with it the duration is compared as a rate."""

    @model_validator(mode="after")
    def _is_possible(self) -> Figure:
        if self.rounding >= self.value:
            raise ValueError("rounding must be less than value")
        if self.amount_bytes and not 0 < self.amount_bytes[0] <= self.amount_bytes[1] < inf:
            raise ValueError("amount_bytes must be two sizes above 0, the lesser first")
        return self

    def band(self, metric: str) -> Band:
        """Return the least and the greatest value that the print allows, in the base unit of `metric`.

        Raises ValueError when the unit is none of the metric's.
        """
        known = units.TIMES if self.amount_bytes else units.units_of(metric)
        if self.amount_bytes and not metric.endswith("_bit_s"):
            raise ValueError(f"amount_bytes makes a rate of a duration, but {metric} is no rate")
        if self.unit not in known:
            raise ValueError(f"unit: '{self.unit}' is none of {metric}.{closest(self.unit, known)}")
        low, high = ((self.value + sign * self.rounding) * known[self.unit] for sign in (-1, 1))
        if self.amount_bytes:
            return self.amount_bytes[0] * 8 / high, self.amount_bytes[1] * 8 / low
        return low, high


class Base(Strict):
    """What all kinds of claims have."""

    says: str
    """The claim as a sentence of its own."""
    place: str
    """Where in the source it stands."""
    metric: str = "goodput_bit_s"
    """The column of runs.csv that measures it."""
    direction: Direction = "server_to_client"
    tolerance: float = Field(default=TOLERANCE, ge=0, le=1)
    conditions: dict[str, Condition] = Field(default_factory=dict)
    """{column of runs.csv, `params.<name>` or `round_trips`: condition}, besides those of the source."""
    not_measured: str | None = None
    """Why no cell measures it; then it needs none."""

    @property
    def cells(self) -> list[str]:
        """The ids of the cells that measure it, none when it cannot be measured."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _is_measured(self) -> Base:
        if bool(self.cells) == bool(self.not_measured):
            raise ValueError("needs a cell that measures it, or else not_measured with the reason")
        if len({cell.rpartition(".")[2] for cell in self.cells}) > 1:
            raise ValueError("its cells must have the same workload")
        return self


class Value(Base):
    """A figure of one cell."""

    kind: Literal["value"]
    cell: str | None = None
    figure: Figure

    @property
    def cells(self) -> list[str]:
        """The one cell."""
        return [self.cell] if self.cell else []

    @model_validator(mode="after")
    def _unit_fits(self) -> Value:
        self.figure.band(self.metric)
        return self


class Ratio(Base):
    """One cell's figure divided by another's."""

    kind: Literal["ratio"]
    of: str | None = None
    to: str | None = None
    figure: Figure | None = None
    """None: made of the `value` claims of the two cells in the same file."""

    @property
    def cells(self) -> list[str]:
        """Numerator and denominator."""
        return [self.of, self.to] if self.of and self.to else []

    @model_validator(mode="after")
    def _unit_fits(self) -> Ratio:
        if self.figure:
            self.figure.band("ratio")
        return self


class Order(Base):
    """A ranking: each cell of a group has more (or less) of the metric than each of the next group."""

    kind: Literal["order"]
    groups: list[list[str]] = Field(default_factory=list)
    """The best first."""
    best: Literal["highest", "lowest"] = "highest"

    @property
    def cells(self) -> list[str]:
        """All cells, the best first."""
        return [cell for group in self.groups for cell in group]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(better, worse): each cell with each of the next group."""
        return [pair for ones, others in itertools.pairwise(self.groups) for pair in itertools.product(ones, others)]

    @model_validator(mode="after")
    def _ranks(self) -> Order:
        if self.cells and not self.pairs:
            raise ValueError("groups: a ranking needs two groups of cells or more")
        if len(set(self.cells)) < len(self.cells):
            raise ValueError("groups: a cell stands in them twice")
        return self


class Cause(Base):
    """A sentence that says why, with the quantity that would have to be true of it."""

    kind: Literal["cause"]
    cell: str | None = None
    against: str | None = None
    """The cell that it is compared with, for `gap_explained_by_overhead`."""
    metric: str = EXPLAINED
    """That, or a column of runs.csv."""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def cells(self) -> list[str]:
        """The cell, and the one that it is compared with."""
        return [cell for cell in (self.cell, self.against) if cell]

    @property
    def band(self) -> Band:
        """What the quantity would have to be."""
        return (
            -inf if self.at_least is None else self.at_least,
            inf if self.at_most is None else self.at_most,
        )

    @model_validator(mode="after")
    def _is_testable(self) -> Cause:
        if self.at_least is None and self.at_most is None:
            raise ValueError("needs at_least or at_most: what the quantity would have to be if the sentence is true")
        if self.cells and (self.metric == EXPLAINED) != (self.against is not None):
            raise ValueError(f"against belongs to the metric {EXPLAINED} and to no other")
        return self


Claim = Annotated[Value | Ratio | Order | Cause, Field(discriminator="kind")]


class Source(Strict):
    """One publication."""

    title: str
    published: str
    caveats: list[str] = Field(default_factory=list)
    """What a reader of the verdicts has to know of this source."""
    conditions: dict[str, Condition] = Field(default_factory=dict)
    """Of all its claims."""
    claims: dict[str, Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _ratios_have_figures(self) -> Source:
        for name, claim in self.claims.items():
            if isinstance(claim, Ratio) and claim.cells:
                try:
                    self.band(claim)
                except KeyError as error:
                    raise ValueError(f"claims.{name}: needs a figure, or a value claim of {error.args[0]}") from error
        return self

    def band(self, claim: Ratio) -> Band:
        """Return the least and the greatest ratio that the print allows; KeyError names a cell without a figure.

        Two durations of the same work are divided as durations: how much it was does not matter then.
        """
        if claim.figure:
            return claim.figure.band("ratio")
        one, other = (self.figure_of(claim, cell) for cell in claim.cells)
        if one.amount_bytes and one.amount_bytes == other.amount_bytes:
            one, other = (each.model_copy(update={"amount_bytes": None}) for each in (other, one))
            (low, high), (least, most) = one.band("duration_s"), other.band("duration_s")
        else:
            (low, high), (least, most) = one.band(claim.metric), other.band(claim.metric)
        return low / most, high / least

    def figure_of(self, claim: Ratio, cell: str) -> Figure:
        """Return what the source prints for a cell of a ratio; KeyError when it prints nothing."""
        for each in self.claims.values():
            if isinstance(each, Value) and (each.cell, each.metric, each.direction) == (
                cell,
                claim.metric,
                claim.direction,
            ):
                return each.figure
        raise KeyError(cell)


def load(directory: Path = CLAIMS, known_cells: Collection[str] | None = None) -> dict[str, Source]:
    """Read `*.yml` of a directory, {file's stem: source}; `known_cells` are the ids of the cells that exist.

    Raises LabError naming file and key for whatever is not as expected.
    """
    sources = {}
    for path in sorted(directory.glob("*.yml")):
        try:
            sources[path.stem] = Source.model_validate(read_yaml(path))
        except ValidationError as error:
            raise from_validation(str(path), error) from error
        for name, claim in sources[path.stem].claims.items():
            for cell in claim.cells:
                if known_cells is not None and cell not in known_cells:
                    near = difflib.get_close_matches(cell, known_cells, n=5, cutoff=0)
                    raise LabError(f"{path}: claims.{name}: no cell '{cell}'.{closest(cell, near)}")
    return sources
