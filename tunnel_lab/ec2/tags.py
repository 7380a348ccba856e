"""The tags by which the lab knows what is its own. Nothing without them is ever removed."""

from __future__ import annotations

from typing import Any

LAB = "lab"
MARK = "tunnel-lab"
EXPIRES = "expires"


def name(lab: str, host: str = "") -> str:
    """Return the name of a lab's resource, or of those of one host."""
    return "-".join(filter(None, ["tunnel-lab", lab, host]))


def of(lab: str, expires: str, host: str = "") -> dict[str, str]:
    """Return every tag of a resource; `expires` is ISO UTC."""
    return {"Name": name(lab, host), LAB: lab, MARK: "1", EXPIRES: expires}


def filters(lab: str | None) -> list[dict[str, Any]]:
    """Return EC2's filters for what belongs to `lab`, or to any lab."""
    chosen = [{"Name": f"tag:{MARK}", "Values": ["1"]}]
    return chosen if lab is None else [*chosen, {"Name": f"tag:{LAB}", "Values": [lab]}]


def read(resource: dict[str, Any]) -> dict[str, str]:
    """Return the tags of what EC2 describes."""
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}
