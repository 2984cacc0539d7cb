#!/bin/sh
# Installs the Debian whose packages are in the folder $1 into the folder $2, as the smallest that Debian knows: without services
# that run, and without a network. Called within a mount namespace of its own, by root, or by who is root in a user namespace.
set -eu
debs=$1
root=$2
mkdir -p "$root/usr"
for dir in bin sbin lib lib64; do
	mkdir -p "$root/usr/$dir"
	ln -s "usr/$dir" "$root/$dir"
done
for deb in "$debs"/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar --extract --directory "$root" --keep-directory-symlink
done
mkdir -p "$root/debs" "$root/var/lib/dpkg/info"
: > "$root/var/lib/dpkg/status"
mount --bind "$debs" "$root/debs"
mount -t proc proc "$root/proc"
for file in passwd group; do cp "$root/usr/share/base-passwd/$file.master" "$root/etc/$file"; done
[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d" # nothing starts
chmod 755 "$root/usr/sbin/policy-rc.d"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/tmp
# What has no configured package to depend on yet comes first.
chroot "$root" sh -c 'dpkg --install --force-depends /debs/base-passwd_*.deb /debs/base-files_*.deb && dpkg --install --force-depends /debs/*.deb'
[ -z "$(chroot "$root" dpkg --audit)" ]
