"""The report of one run or of several: report.html, one file for a browser, and report.md, the same as text."""

from __future__ import annotations

from pathlib import Path

from tunnel_lab.report.inputs import Inputs

__all__ = ["Inputs", "write"]


def write(inputs: Inputs, directory: Path) -> list[Path]:
    """Write report.html and report.md into `directory`, each in one step (0644); return their paths.

    The same records give the same bytes. Raises LabError when a file cannot be written, and when `inputs.series`
    names a cell or repeat that there is not.
    """
    from tunnel_lab.report import page  # noqa: PLC0415  drawing takes half a second to load, which others need not wait

    return page.write(inputs, directory)
