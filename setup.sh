#!/bin/sh
# Installs what the lab needs on this machine: system packages (apt, root or sudo) and .venv with pinned versions.
# usage: ./setup.sh [--dev] [--vm]      --dev adds what `make test` needs, --vm what virtual machines need
set -eu
cd "$(dirname "$0")"

fail() { echo "setup: $*" >&2; exit 1; }

# 1. this machine
[ -r /etc/os-release ] || fail "this is not a Linux distribution; the local lab needs Debian 12/13 or Ubuntu"
# shellcheck disable=SC1091
. /etc/os-release
case " ${ID:-} ${ID_LIKE:-} " in
  *" debian "* | *" ubuntu "*) ;;
  *) fail "${PRETTY_NAME:-this system} is not supported as the lab's own machine; use Debian 12/13 or Ubuntu" ;;
esac

# 2. system packages
wanted="podman crun mmdebstrap debian-archive-keyring openssh-client iproute2 ethtool procps git util-linux"
case " $* " in *" --dev "*) wanted="$wanted iperf3 chromium chromium-driver" ;; esac
case " $* " in *" --vm "*) wanted="$wanted qemu-system-x86 qemu-utils e2fsprogs socat" ;; esac
[ -d /sys/fs/cgroup/unified ] && wanted="$wanted runc"   # crun refuses the v1 hybrid
for python in python3 python3.14 python3.13 python3.12 python3.11 none; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
done
[ "$python" != none ] || fail "Python 3.11 or newer is needed; $(python3 --version 2>/dev/null || echo none) was found"
"$python" -c 'import ensurepip, venv' 2>/dev/null || wanted="$wanted python3-venv"
missing=""
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing and neither root nor sudo is there to install them:$missing"
    sudo="sudo"
  fi
  echo "setup: installing$missing"
  # shellcheck disable=SC2086
  { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing; } \
    >.setup.log 2>&1 || { tail -5 .setup.log >&2; fail "apt-get failed; all it said is in .setup.log"; }
  rm -f .setup.log
fi

# 3. the virtual environment
echo "setup: Python packages into .venv"
extra=""
case " $* " in *" --dev "*) extra="-r requirements-dev.txt" ;; esac
[ -x .venv/bin/python ] || "$python" -m venv .venv || fail "the virtual environment could not be made"
[ -x .venv/bin/uv ] || .venv/bin/python -m pip install -q --disable-pip-version-check "uv==0.13.9" || fail "pip could not install uv"
# shellcheck disable=SC2086
UV_PYTHON_DOWNLOADS=never .venv/bin/uv pip install -q --python .venv/bin/python \
  -r requirements.txt $extra -c constraints.txt -e . || fail "the Python packages could not be installed"
