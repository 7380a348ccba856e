"""What a host does at its first boot: take the lab's host key, and arm its own end."""

from __future__ import annotations

from pathlib import Path

import yaml

# An absolute time, written once: a reboot must not begin a new term. cloud-init runs this early at every boot, where
# waiting for a unit to start could wait for itself. A time that is past when the host boots counts at once.
END = """\
set -eu
units=/etc/systemd/system
if [ ! -e $units/tunnel-lab-end.timer ]; then
  end=$(date -u -d '+{minutes} minutes' '+%Y-%m-%d %H:%M:%S UTC')
  printf '%s\\n' '[Unit]' 'Description=The time of this host is over' \\
    '[Service]' 'Type=oneshot' 'ExecStart=/bin/systemctl poweroff' >$units/tunnel-lab-end.service
  printf '%s\\n' '[Unit]' 'Description=When the time of this host is over' \\
    '[Timer]' "OnCalendar=$end" 'Persistent=true' 'AccuracySec=1s' \\
    '[Install]' 'WantedBy=timers.target' >$units/tunnel-lab-end.timer.new
  mv $units/tunnel-lab-end.timer.new $units/tunnel-lab-end.timer
fi
systemctl daemon-reload
systemctl enable tunnel-lab-end.timer
systemctl --no-block start tunnel-lab-end.timer
"""


def user_data(minutes: int, host_key: Path) -> str:
    """Return cloud-init's configuration for a host that powers off after `minutes` and shows `host_key` to ssh.

    Powering off terminates it, which is said where it is launched.
    """
    content = {
        "bootcmd": [["sh", "-c", END.format(minutes=minutes)]],
        "ssh_deletekeys": True,
        "ssh_keys": {
            "ed25519_private": host_key.read_text(encoding="utf-8"),
            "ed25519_public": host_key.with_suffix(".pub").read_text(encoding="utf-8").strip(),
        },
    }
    return "#cloud-config\n" + str(yaml.safe_dump(content, width=1000))
