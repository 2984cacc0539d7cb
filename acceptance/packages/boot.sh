#!/bin/sh
# Boots the Debian in the folder $1: systemd, with mounts, processes, a network and a control group ($2) of its own. It ends when
# it is killed, and everything in it with it. Takes root.
set -eu
root=$1
group=$2
exec unshare --mount sh -euc '
mount -t cgroup2 cgroup2 "$1/mnt"
mkdir "$1/mnt/$2"
echo $$ > "$1/mnt/$2/cgroup.procs"
umount "$1/mnt"
exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child sh -euc "$3" sh "$1"
' sh "$root" "$group" '
root=$1
mount --bind "$root" "$root"
ip link set lo up
hostname debian
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys" # the kernel belongs to others
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
	: > "$root/dev/$name"
	mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/shm" "$root/dev/pts" "$root/.old"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx" # without it no unit has devices of its own
ln -s /proc/self/fd "$root/dev/fd"
cd "$root"
pivot_root . .old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb sh -c "
	umount -l /.old && rmdir /.old &&
	exec /usr/lib/systemd/systemd --system --show-status=no --unit=multi-user.target < /dev/null"
'
