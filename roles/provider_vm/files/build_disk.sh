#!/bin/sh
# Makes a virtual machine's disk, kernel and initrd out of the hosts' root file system.
# usage: build_disk.sh ROOT.tar OUT_DIRECTORY      as root; the directory appears when all is in it
set -eu
tar=$1 out=$2
umask 022
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$work/root" "$work/image"
tar -xf "$tar" -C "$work/root"

cat > "$work/root/usr/sbin/tunnellab-vm" <<'SCRIPT'
#!/bin/sh
# What this machine was given when it was started: name, keys, its address on the link.
set -eu
umask 077
cd "$CREDENTIALS_DIRECTORY"
hostname "$(cat tunnellab.hostname)"
cp tunnellab.host_key /etc/ssh/ssh_host_ed25519_key
mkdir -p /root/.ssh /run/sshd
cp tunnellab.authorized_keys /root/.ssh/authorized_keys
for name in eth0 eth1; do
  n=0
  until [ -d "/sys/class/net/$name" ]; do n=$((n + 1)); [ $n -lt 300 ]; sleep 0.1; done
done
ip address replace 10.0.2.15/24 dev eth0
ip link set eth0 up
ip link set eth1 name link0
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
ip address replace "$(cat tunnellab.link_address)" dev link0
ip link set link0 up
SCRIPT
chmod 755 "$work/root/usr/sbin/tunnellab-vm"
cat > "$work/root/etc/systemd/system/tunnellab-vm.service" <<'UNIT'
[Unit]
Description=tunnel-lab: what this machine was given, and ssh

[Service]
Type=exec
LoadCredential=tunnellab.hostname
LoadCredential=tunnellab.host_key
LoadCredential=tunnellab.authorized_keys
LoadCredential=tunnellab.link_address
ExecStartPre=/usr/sbin/tunnellab-vm
ExecStart=/usr/sbin/sshd -D -e -o UsePAM=no
UNIT
mkdir -p "$work/root/etc/systemd/system/multi-user.target.wants"
ln -s ../tunnellab-vm.service "$work/root/etc/systemd/system/multi-user.target.wants/"

mv "$work/root/boot"/vmlinuz-* "$work/image/vmlinuz"
mv "$work/root/boot"/initrd.img-* "$work/image/initrd"
mke2fs -q -t ext4 -d "$work/root" "$work/image/root.ext4" 4G
rm -rf "$out"
mv "$work/image" "$out"
