"""The variables that a user of the lab may set, checked as a whole before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from tunnel_lab.errors import LabError, closest, from_validation
from tunnel_lab.manifests import ROOT, Settings, Strict, read_yaml
from tunnel_lab.stats import FEWEST


class Profile(Strict):
    """How much to measure: one entry of profiles.yml."""

    description: str
    repeats: int = Field(ge=1)
    select: list[str] = Field(min_length=1)
    params: dict[str, Settings] = Field(default_factory=dict)


class Link(Strict):
    """The emulated link between the hosts. The round trip is set here and nowhere else."""

    rtt_ms: float = Field(gt=0, le=2000)
    rate_mbit: float = Field(gt=0)
    """Rate of each direction in 10^6 bit/s, Ethernet headers included."""
    queue_bytes: int | None = Field(default=None, ge=3000)
    """Bytes that may wait before the bottleneck; None: one bandwidth-delay product, at least 150000."""
    loss_pct: float = Field(default=0, ge=0, lt=100)
    rtt_tolerance_ms: float = Field(default=1, gt=0)
    """How far the measured round trip may be from the set one. Hosts with an emulated CPU add some of their own."""
    emulator: Literal["auto", "netem", "relay"] = "auto"
    """auto: the kernel's netem where it has one, else the lab's own user-space relay."""

    def resolved(self) -> dict[str, float | int | str]:
        """Return all settings with the default of the queue applied."""
        product = round(self.rate_mbit * 1e6 / 8 * self.rtt_ms / 1e3)
        queue = max(150_000, product) if self.queue_bytes is None else self.queue_bytes
        return {**self.model_dump(), "queue_bytes": queue}


class Image(Strict):
    """What the local hosts' image is built from."""

    suite: str = "trixie"
    mirror: str | None = None
    """Another mirror than Debian's own, or the address of one day in Debian's snapshot archive."""


class Choices(Strict):
    """Every `lab_*` variable that inventories and `-e` may set."""

    lab_name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,20}$")
    lab_provider: str
    lab_profile: str = "quick"
    lab_select: list[str] = Field(default_factory=list)
    lab_repeats: int | Literal["auto"] | None = None
    """auto: as many as each cell needs for an interval within lab_precision, at most lab_repeats_max."""
    lab_precision: float = Field(default=0.05, gt=0, le=1)
    """Half-width of the 95 % interval of the median goodput, as a share of it, at which a cell is measured enough."""
    lab_repeats_max: int = Field(default=20, ge=FEWEST)
    lab_params: dict[str, Settings] = Field(default_factory=dict)
    lab_variants: dict[str, Any] = Field(default_factory=dict)
    lab_override: dict[str, Settings] = Field(default_factory=dict)
    lab_seed: int = 2016
    lab_timeout_s: float | None = Field(default=None, gt=0)
    lab_sampler: bool | Literal["alternate"] = True
    """Whether the hosts are sampled: without, there is no reason beside a number. alternate: in odd repeats only."""
    lab_link: Link | None = None
    lab_image: Image = Image()
    lab_sysctls: dict[str, str | int] = Field(default_factory=dict)
    lab_ttl_minutes: int = Field(default=120, ge=10, le=7 * 24 * 60)
    """After this time hosts that cost money end by themselves, whatever has become of the lab."""
    lab_keep: bool = False
    """Whether hosts that cost money stay after lab.yml has ended; they still end with lab_ttl_minutes."""
    lab_confirm_cost: bool = False
    """Whether the user has agreed to what the hosts may cost."""
    lab_wait_for_ssh: bool = True
    """False: provisioning ends before the first connection to a host."""
    lab_rerun: str | None = None
    """A stored run, directory or bundle, whose plan is measured again (tunnel_lab/rerun.py); kept is its run_id."""

    @field_validator("lab_repeats", mode="before")
    @classmethod
    def _count(cls, value: Any) -> Any:
        if value is None or value == "auto":
            return value
        if isinstance(value, bool | float) or not str(value).isdecimal() or int(value) < 1:
            raise ValueError("must be a whole number from 1 on, or auto")
        return int(value)

    @field_validator("lab_select", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list):
            return value
        named = [part.strip() for part in parts if isinstance(part, str) and part.strip()]
        if not named:
            raise ValueError("names no cell; leave it out for the profile's own selection")
        return named

    @property
    def profile(self) -> Profile:
        """The chosen profile; a LabError when profiles.yml is wrong or has no such profile."""
        found = profiles()
        if self.lab_profile not in found:
            raise LabError(
                f"lab_profile: '{self.lab_profile}' is not in profiles.yml.{closest(self.lab_profile, found)}"
            )
        return found[self.lab_profile]


def profiles(path: Path = ROOT / "profiles.yml") -> dict[str, Profile]:
    """Read profiles.yml."""
    try:
        return TypeAdapter(dict[str, Profile]).validate_python(read_yaml(path))
    except ValidationError as error:
        raise from_validation(str(path), error) from error


def from_variables(variables: dict[str, Any]) -> Choices:
    """Check all `lab_*` variables at once: unknown names, wrong types and values are LabErrors."""
    given = {name: value for name, value in variables.items() if name.startswith("lab_")}
    for name in given:
        if name not in Choices.model_fields:
            raise LabError(f"{name}: no such variable.{closest(name, Choices.model_fields)}")
    try:
        return Choices.model_validate(given)
    except ValidationError as error:
        raise from_validation("variable", error) from error
