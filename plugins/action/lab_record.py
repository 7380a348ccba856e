"""Write the record of one repeat and say what it measured. Runs on the controller."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from tunnel_lab import progress
from tunnel_lab.errors import LabError
from tunnel_lab.link import manage
from tunnel_lab.records import Record


class ActionModule(ActionBase):
    """`lab_record: {run_dir, step, cell, failures, ...}`; empty parts of the record are left out."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write `raw/<cell>.r<repeat>.json`."""
        args = dict(self._task.args)
        directory = Path(args.pop("run_dir"))
        hosts_of: dict[str, list[str]] = {}
        for host, text in args.pop("failures").items():
            if text:
                hosts_of.setdefault(text.removeprefix("Cell | "), []).append(host)
        failures = [f"{text} [{' and '.join(hosts)}]" for text, hosts in hosts_of.items()]
        link = args.pop("link")
        after: dict[str, Any] = {}
        try:
            after = manage.statistics(Path(link["home"]))
        except LabError as error:
            failures.append(str(error))
        begun = progress.last_finished(directory)
        try:
            args["link"] = {
                "interfaces": link["interfaces"],
                "before": link["before"],
                "after": after,
            }
            record = Record.model_validate(
                {
                    **{key: value for key, value in args.items() if value},
                    "run_id": directory.name,
                    "status": "failed" if failures else "ok",
                    "reason": "; ".join(failures) or None,
                    "started_at": begun.isoformat(timespec="milliseconds"),
                    "wall_s": round((datetime.now(UTC) - begun).total_seconds(), 3),
                }
            )
            Display().display(progress.finish(directory, record))
        except (LabError, ValueError) as error:
            raise AnsibleActionFail(f"the record could not be written: {error}") from None
        return {"changed": False}
