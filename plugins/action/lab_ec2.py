"""Run one verb of `python -m tunnel_lab.ec2` on the controller, and show what it tells while it works."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

CHANGING = ("begin", "launch", "destroy")
"""Verbs that change something."""


class ActionModule(ActionBase):
    """`lab_ec2: {verb: destroy, lab: ..., ...}`, keys as the verb's options; returns the verb's answer."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer, or fail with what the verb says is wrong."""
        options = dict(self._task.args)
        if self._task.check_mode and options["verb"] in CHANGING:
            return {"changed": True, "skipped": True}
        command = [sys.executable, "-m", "tunnel_lab.ec2", str(options.pop("verb"))]
        for key, value in options.items():
            text = value if isinstance(value, str) else json.dumps(value)
            command.append(f"--{key.replace('_', '-')}={text}")
        answer: dict[str, Any] = {}
        with tempfile.TemporaryFile("w+") as wrong:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=wrong, text=True) as process:
                for line in process.stdout or []:
                    told = json.loads(line)
                    if "say" in told:
                        Display().display(told["say"])
                    else:
                        answer = told
            wrong.seek(0)
            said = wrong.read().strip()
        if process.returncode != 0:
            raise AnsibleActionFail(said or f"it ended with status {process.returncode} and said nothing")
        return {"changed": False, **answer}
