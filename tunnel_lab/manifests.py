"""What exists: tunnels, variants and workloads, read from the roles' manifests.

A tunnel is `roles/tunnel_<name>/tunnel.yml`, a workload is `roles/workload_<name>/workload.yml`.
There is no other list of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from tunnel_lab.errors import LabError, closest, from_validation

ROOT = Path(__file__).resolve().parent.parent
ROLES = ROOT / "roles"

Settings = dict[str, Any]
M = TypeVar("M", bound=BaseModel)


class Strict(BaseModel):
    """A model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Variant(Strict):
    """One named tuning of a tunnel, pure data."""

    description: str = ""
    extends: str | None = None
    settings: Settings = Field(default_factory=dict)
    insecure: str | None = None
    """Why nobody should use this outside a lab; None: as what it extends, empty: no such reason."""


VariantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
"""No dots, which separate the parts of a cell's id, and nothing that a file or unit cannot be called."""


Port = Annotated[str, Field(pattern=r"^(\d{1,5}/(tcp|udp)|esp)$")]
"""`1194/udp`, `5201/tcp`, or `esp` for the protocol that has no ports."""


class Target(Strict):
    """Where the server's service appears to the client once the tunnel is up."""

    address: str
    """An address, or `{server_address}` for the server's end of the link."""
    port: int | None = None
    """None: the service's own port."""


class Evidence(Strict):
    """One fact read back from a running tunnel, and what the variant's settings say it must be."""

    name: str
    hosts: list[Literal["server", "client"]] = Field(min_length=1)
    """Where it must be found."""
    pattern: str
    """A regular expression with one group, searched in the log of the host's unit; its last match counts."""
    expect: str | None = None
    """A Jinja expression over the settings; a result of None means: record it, expect nothing."""

    @field_validator("pattern")
    @classmethod
    def _has_one_group(cls, value: str) -> str:
        try:
            groups = re.compile(value).groups
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        if groups != 1:
            raise ValueError(f"needs one group, has {groups}")
        return value


class Need(Strict):
    """What a host's kernel or programs must be able to do, and how one finds out."""

    what: str
    """As it is told: `WireGuard in the kernel`."""
    probe: str
    """A shell command for both hosts, as root, once the packages are there; it leaves nothing behind."""
    when: str = "true"
    """A Jinja expression over a variant's settings: whether it needs this."""


def check_setting(where: str, default: Any, value: Any, choices: list[str] | None = None) -> None:
    """Refuse a value that has not the type of the default, is negative, or is none of `choices`, with a LabError.

    A default of null stands for a number that is not set.
    """
    expected = int if default is None else type(default)
    # Ansible hands over subclasses of int and str; bool is one of int, but no number
    fits = isinstance(value, expected) and isinstance(value, bool) == (expected is bool)
    if not fits and not (default is None and value is None):
        raise LabError(f"{where} must be of type {expected.__name__}, it is {value!r}.")
    if isinstance(value, int) and value < 0:
        raise LabError(f"{where} must not be negative, it is {value!r}.")
    if choices is not None and value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise LabError(f"{where} must be one of {allowed}, it is {value!r}.")


class Tunnel(Strict):
    """`tunnel.yml`: what a tunnel is, every setting it knows with its default, its variants."""

    name: str
    description: str
    packages: list[str] = Field(default_factory=list)
    target: Target
    interface: str | None = None
    """The tunnel's own network interface on both hosts, None for a tunnel without one."""
    networks: list[str] = Field(default_factory=list)
    """The addresses inside it, `10.8.0.0/24`; nothing else on the hosts may have them."""
    defaults: Settings = Field(default_factory=dict)
    choices: dict[str, list[str]] = Field(default_factory=dict)
    """The only values that some settings may have."""
    variants: dict[VariantName, Variant]
    units: dict[Literal["server", "client"], str] = Field(default_factory=dict)
    """The systemd unit that carries the tunnel on each host; `{variant}` stands for the variant."""
    configuration: dict[Literal["server", "client"], list[str]] = Field(default_factory=dict)
    """The files that say how the tunnel runs, without secrets; they go into the record. `{variant}` as in units."""
    needs: list[Need] = Field(default_factory=list)
    """Where one of them is not met, the cells that need it are `not possible` and all others are measured."""
    ports: list[Port] = Field(default_factory=list)
    """What the other end must be able to reach."""
    evidence: list[Evidence] = Field(default_factory=list)
    compresses: str = "false"
    """A Jinja expression over the settings: whether less may travel over the link than the payload."""

    def resolve(self, variant: str, override: Settings | None = None) -> Settings:
        """Return every setting of `variant`: defaults, what it extends, its own, then `override`."""
        chain: list[Variant] = []
        name: str | None = variant
        while name is not None:
            if name not in self.variants:
                raise LabError(f"tunnel {self.name}: no variant '{name}'.{closest(name, self.variants)}")
            if self.variants[name] in chain:
                raise LabError(f"tunnel {self.name}: variant '{variant}' extends itself through '{name}'.")
            chain.append(self.variants[name])
            name = self.variants[name].extends
        merged = dict(self.defaults)
        layers = [("variant " + variant, v.settings) for v in reversed(chain)]
        for source, settings in [*layers, ("lab_override", override or {})]:
            for key, value in settings.items():
                if key not in self.defaults:
                    raise LabError(
                        f"tunnel {self.name}, {source}: unknown setting '{key}'.{closest(key, self.defaults)}"
                    )
                check_setting(f"tunnel {self.name}, {source}: {key}", self.defaults[key], value, self.choices.get(key))
                merged[key] = value
        return merged

    def insecure(self, variant: str) -> str | None:
        """Return why `variant`, or one it extends, must not be used outside a lab."""
        chosen = self.variants[variant]
        if chosen.insecure is None and chosen.extends is not None:
            return self.insecure(chosen.extends)
        return chosen.insecure or None


class Workload(Strict):
    """`workload.yml`: what is driven through a tunnel and every parameter it knows."""

    name: str
    description: str
    packages: list[str] = Field(default_factory=list)
    service_port: int
    """The TCP port of the service on the server."""
    server_units: list[str] = Field(default_factory=list)
    """Units that serve it; their logs go into the record."""
    client_units: list[str] = Field(default_factory=list)
    """Units of the client, beside the commands of a repeat; their logs go into the record."""
    early: bool = False
    """Whether `tasks/early.yml` is run on both hosts before the tunnel is brought up."""
    fresh: bool = False
    """Whether the server's units are started anew for every repeat."""
    done_log: str | None = None
    """A regular expression that the server's units log when they have counted the whole repeat."""
    params: Settings = Field(default_factory=dict)
    shown: dict[str, str] = Field(default_factory=dict)
    """Columns of its own that a summary shows to people, the median of each, with its head."""
    limits: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """The least and the most that a parameter may be."""
    requires: list[str] = Field(default_factory=list)
    """Jinja expressions over the parameters that must hold, such as `omit_s < bulk_s`."""
    timeout_s: float | str
    """The longest that one command may take, in seconds, or a Jinja expression over the parameters for it."""
    transfer_bytes: float | str = 0
    """What one repeat transfers of a size that is known, in both directions together; or an expression as above."""
    transfer_s: float | str = 0
    """How long one repeat transfers as fast as it goes, both directions together; or an expression as above."""

    def check_value(self, key: str, value: Any) -> None:
        """Refuse a value that is not a number as its default is one, or not within its limits, with a LabError."""
        where = f"lab_params.{self.name}"
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise LabError(f"{where}: {key} must be a number, it is {value!r}.")
        if isinstance(self.params[key], int) and not isinstance(value, int):
            raise LabError(f"{where}: {key} must be a whole number, it is {value!r}.")
        least, most = self.limits.get(key, (0, float("inf")))
        if not least <= value <= most:
            raise LabError(f"{where}: {key} must be from {least:g} to {most:g}, it is {value!r}.")


class Provider(Strict):
    """`provider.yml`: how hosts come to be, and every inventory variable that says so."""

    name: str
    description: str
    on_this_machine: bool
    """Whether its hosts are made on the machine that runs the playbooks, so that two labs would measure each other."""
    hosts_stay: bool
    """Whether the hosts were there before the lab and stay after it; then the lab's traces on them are undone."""
    costs: bool
    """Whether hosts cost money for as long as they exist; then lab.yml removes them at its end."""
    settings: Settings = Field(default_factory=dict)
    """{variable: default}, each beginning with the provider's name. Set for all hosts or for one."""
    choices: dict[str, list[str]] = Field(default_factory=dict)

    def resolve(self, host: str, variables: dict[str, Any]) -> Settings:
        """Return every setting for one host, from its inventory `variables`; a LabError names what is wrong."""
        prefix = f"{self.name}_"
        merged = dict(self.settings)
        for key in sorted(key for key in variables if key.startswith(prefix)):
            if key not in self.settings:
                raise LabError(f"{key}: no such variable.{closest(key, self.settings)}")
            merged[key] = _as_given(self.settings[key], variables[key])
            check_setting(f"{key} of {host}", self.settings[key], merged[key], self.choices.get(key))
        return merged


def _as_given(default: Any, value: Any) -> Any:
    """Return a variable as its default's type where it means that: `-e` makes a string of everything."""
    if isinstance(default, str) and type(value) is int:  # an account's number, in a file of YAML
        return str(value)
    if isinstance(default, bool | int | float) and isinstance(value, str):
        try:
            return TypeAdapter(type(default)).validate_python(str(value))
        except ValidationError:
            return value
    return value


class Catalog(Strict):
    """Everything that exists."""

    tunnels: dict[str, Tunnel]
    workloads: dict[str, Workload]

    @property
    def packages(self) -> list[str]:
        """The packages that any of them needs on a host, sorted."""
        kinds = [tunnel.packages for tunnel in self.tunnels.values()]
        kinds += [workload.packages for workload in self.workloads.values()]
        return sorted({package for packages in kinds for package in packages})


def read_yaml(path: Path) -> dict[str, Any]:
    """Read one YAML mapping; any problem is a LabError that names the file and the line."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not valid YAML: {_in_one_line(error)}") from error
    if not isinstance(data, dict):
        raise LabError(f"{path}: expected a mapping at the top, found {type(data).__name__}.")
    return data


def _in_one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {said}" if mark else " ".join(said.split())


def _load(model: type[M], path: Path, name: str) -> M:
    try:
        return model.model_validate({**read_yaml(path), "name": name})
    except ValidationError as error:
        raise from_validation(str(path), error) from error


def provider(name: str, roles: Path = ROLES) -> Provider:
    """Return the provider of this name; a LabError says which there are."""
    known = [path.parent.name.removeprefix("provider_") for path in roles.glob("provider_*/provider.yml")]
    if name not in known:
        raise LabError(f"lab_provider: '{name}' does not exist.{closest(name, known)}")
    return _load(Provider, roles / f"provider_{name}" / "provider.yml", name)


def load(roles: Path = ROLES, extra_variants: dict[str, Any] | None = None) -> Catalog:
    """Read all manifests below `roles`; `extra_variants` ({tunnel: {name: variant}}) come from the user.

    Raises LabError naming file (or variable) and key for whatever is not as expected.
    """
    tunnels = {}
    for path in sorted(roles.glob("tunnel_*/tunnel.yml")):
        name = path.parent.name.removeprefix("tunnel_")
        tunnels[name] = _load(Tunnel, path, name)
    workloads = {}
    for path in sorted(roles.glob("workload_*/workload.yml")):
        name = path.parent.name.removeprefix("workload_")
        workloads[name] = _load(Workload, path, name)
    for name, variants in (extra_variants or {}).items():
        if name not in tunnels:
            raise LabError(f"lab_variants: no tunnel '{name}'.{closest(name, tunnels)}")
        tunnels[name] = _with_variants(tunnels[name], variants)
        for variant in variants:
            tunnels[name].resolve(variant)  # also when no cell of it is selected
    return Catalog(tunnels=tunnels, workloads=workloads)


def _with_variants(tunnel: Tunnel, variants: Any) -> Tunnel:
    where = f"lab_variants.{tunnel.name}"
    if not isinstance(variants, dict):
        raise LabError(f"{where}: expected a mapping of variant name to variant, found {variants!r}.")
    taken = sorted(set(variants) & set(tunnel.variants))
    if taken:
        raise LabError(
            f"{where}: '{taken[0]}' exists already. Give yours another name, "
            f"or change one setting of it with lab_override."
        )
    try:
        new = TypeAdapter(dict[VariantName, Variant]).validate_python(variants)
    except ValidationError as error:
        raise from_validation(where, error) from error
    return tunnel.model_copy(update={"variants": {**tunnel.variants, **new}})
