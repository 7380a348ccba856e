"""Carries out what the action lab_at_end asks for."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

from tunnel_lab import at_end

DOCUMENTATION = """
name: lab_at_end
type: aggregate
short_description: Runs a playbook when ansible-playbook ends
description: Whichever way it ends; see tunnel_lab/at_end.py.
"""


class CallbackModule(CallbackBase):
    """Waits for a result of lab_at_end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "lab_at_end"

    def v2_runner_on_ok(self, result: Any) -> None:
        """Arm the main process."""
        command = result.result.get("lab_at_end")
        if command:
            at_end.arm([str(word) for word in command])
