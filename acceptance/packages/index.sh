#!/bin/sh
# Makes a folder of .deb files one that apt can install from: file:FOLDER ./
set -eu
cd "$1"
for deb in *.deb; do
	dpkg-deb --field "$deb"
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done > Packages
