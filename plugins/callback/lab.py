"""What `ansible-playbook` prints here: what changed, what failed and why, and what the lab itself says.

For everything that Ansible can tell: ANSIBLE_STDOUT_CALLBACK=default, with -v and more.
"""

from __future__ import annotations

from typing import Any

from ansible import constants as C
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: lab
type: stdout
short_description: One line for each change and each failure
description: Plays and tasks that change nothing are silent.
"""


class CallbackModule(CallbackBase):
    """Prints one line for each change and each failure."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "lab"

    def __init__(self) -> None:
        super().__init__()
        self._said: tuple[str, str] | None = None

    @staticmethod
    def _rescued(result: Any) -> bool:
        """Return whether the task sits in a block that handles its failures, and tells of them in its own way."""
        block = result.task._parent
        while block is not None:
            if getattr(block, "rescue", None):
                return True
            block = block._parent
        return False

    def _changed(self, result: Any) -> None:
        self._handle_warnings(result.result)
        line = (result.task.get_name(), "changed")
        if result.result.get("changed") and not self._rescued(result) and line != self._said:
            self._said = line  # a loop or a second host says it once
            self._display.display(f"  {line[0]}", color=C.COLOR_CHANGED)

    def _failed(self, result: Any, word: str) -> None:
        self._handle_warnings(result.result)
        if self._rescued(result) and word == "FAILED":
            return
        said = result.result
        detail = [str(said[key]).strip() for key in ("msg", "stderr", "stdout") if said.get(key)]
        text = "\n".join(dict.fromkeys(detail)) or "no reason given"
        if said.get("_ansible_no_log"):
            text = "its output is hidden because it handles secrets"
        self._display.display(f"{word}: {result.task.get_name()} [{result.host.get_name()}]: {text}", C.COLOR_ERROR)

    def v2_runner_on_ok(self, result: Any) -> None:
        """Report a change."""
        self._changed(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Report why; the items of a loop have reported theirs."""
        if not ignore_errors and "results" not in result.result:
            self._failed(result, "FAILED")

    def v2_runner_item_on_failed(self, result: Any) -> None:
        """Report why."""
        self._failed(result, "FAILED")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Report a host that cannot be reached."""
        self._failed(result, "UNREACHABLE")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """Report a play without hosts."""
        self._display.display("no host of the inventory matches this play", C.COLOR_ERROR)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print the sums by host: with -v, and when something failed or changed."""
        for host in sorted(stats.processed):
            sums = stats.summarize(host)
            if self._display.verbosity or any(sums[key] for key in ("changed", "failures", "unreachable")):
                shown = ", ".join(f"{key}={value}" for key, value in sums.items() if value or key == "changed")
                self._display.display(f"{host}: {shown}")
