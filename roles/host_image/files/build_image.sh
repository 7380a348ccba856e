#!/bin/sh
# Builds the root file system of the lab's hosts from Debian's packages.
# usage: build_image.sh SUITE MIRROR RECIPE_HASH OUT.tar PACKAGE...
# MIRROR may be empty (Debian's own) or the address of one day in Debian's snapshot archive, for exact reproduction.
set -eu
suite=$1 mirror=$2 recipe=$3 out=$4
shift 4

# the sub-shells' $1 is the new root; nothing of the building machine may stay in it
mmdebstrap --quiet --variant=minbase --format=tar \
  --aptopt='Acquire::Check-Valid-Until "false"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --include="$(echo "$*" | tr ' ' ',')" \
  --essential-hook="copy-in $(dirname "$0")/initramfs-tools /etc" \
  --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/resolv.conf"; : > "$1/etc/machine-id"' \
  --customize-hook='echo localhost > "$1/etc/hostname"; echo "127.0.0.1 localhost" > "$1/etc/hosts"' \
  --customize-hook='rm -f "$1"/etc/apt/sources.list.d/* "$1/etc/apt/sources.list"' \
  --customize-hook='echo "d /run/sshd 0755 root root" > "$1/etc/tmpfiles.d/tunnel-lab.conf"' \
  --customize-hook="echo '$recipe built $(date -u +%Y-%m-%dT%H:%M:%SZ) suite $suite${mirror:+ from $mirror}' > \"\$1/etc/tunnel-lab-image\"" \
  --customize-hook='for unit in ssh.service ssh.socket redis-server.service openvpn.service strongswan.service iperf3.service \
      systemd-networkd.service systemd-resolved.service systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer \
      e2scrub_all.timer fstrim.timer dpkg-db-backup.timer getty.target console-getty.service; do
      ln -sf /dev/null "$1/etc/systemd/system/$unit"; done' \
  "$suite" "$out" ${mirror:+"$mirror"}
