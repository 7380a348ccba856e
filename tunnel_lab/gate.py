"""Is the tunnel what its variant says? Judged by what its own programs log, against the manifest's evidence."""

from __future__ import annotations

import re

from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.sandbox import SandboxedEnvironment

from tunnel_lab.errors import LabError
from tunnel_lab.manifests import Evidence, Settings, Tunnel

_JINJA = SandboxedEnvironment(undefined=StrictUndefined)


def expression(text: str, settings: Settings) -> object:
    """Evaluate a manifest's Jinja expression over a variant's settings; LabError when it is not one."""
    try:
        value: object = _JINJA.compile_expression(text, undefined_to_none=False)(**settings)
        # an undefined name alone complains only when it is used
        return str(value) if isinstance(value, Undefined) else value
    except (TemplateError, TypeError) as error:
        raise LabError(f"the expression '{text}' of a tunnel.yml: {error}") from error


def check(tunnel: Tunnel, settings: Settings, logs: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what is in force ({`client.cipher`: ...}) and what differs from the settings, as sentences.

    `logs` is {host: the log of the tunnel's unit there}.
    """
    negotiated, problems = {}, []
    for host, evidence in [(host, each) for each in tunnel.evidence for host in each.hosts]:
        name = f"{host}.{evidence.name}"
        value = _last(evidence, logs.get(host, ""))
        if value is None:
            problems.append(f"{name} is not in the log of the {host}'s {tunnel.name}")
            continue
        negotiated[name] = value
        expected = expression(evidence.expect, settings) if evidence.expect else None
        if expected is not None and value != str(expected):
            problems.append(f"{name} is '{value}', the variant says '{expected}'")
    return negotiated, problems


def _last(evidence: Evidence, log: str) -> str | None:
    """Return the group of the last match; a group that took no part is an empty string."""
    found = list(re.finditer(evidence.pattern, log, re.MULTILINE))
    return (found[-1][1] or "") if found else None
