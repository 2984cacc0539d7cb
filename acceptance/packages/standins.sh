#!/bin/sh
# Makes, in the folder $1, a repository of what PostgreSQL's own packages have for the test: postgresql-16 and pgbouncer, of the
# tools in the folder $2. What makes a cluster, and its units, is Debian's postgresql-common, as it is for the real ones.
set -eu
repository=$1
tools=$2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$repository"

# deb NAME VERSION DEPENDS: packs the folder of that name, whose postinst is on standard input.
deb() {
	mkdir -p "$stage/$1/DEBIAN"
	printf '%s\n' "Package: $1" "Version: $2" 'Architecture: amd64' 'Maintainer: test <test@example.com>' "Depends: $3" \
		'Description: a stand-in' > "$stage/$1/DEBIAN/control"
	cat > "$stage/$1/DEBIAN/postinst"
	chmod 755 "$stage/$1/DEBIAN/postinst"
	dpkg-deb --root-owner-group -Znone --build "$stage/$1" "$repository/$1.deb" > /dev/null
}

# program PACKAGE PATH TOOL
program() {
	mkdir -p "$stage/$1/${2%/*}"
	printf '#!/bin/sh\nexec %s "$@"\n' "$3" > "$stage/$1/$2"
	chmod 755 "$stage/$1/$2"
}

postgres=usr/lib/postgresql/16
mkdir -p "$stage/postgresql-16/$postgres" "$stage/pgbouncer/usr/lib/tools" "$stage/pgbouncer/usr/lib/systemd/system"
cp -a "$tools/server/." "$stage/postgresql-16/$postgres/"
cp -a "$tools/client" "$stage/pgbouncer/usr/lib/tools/"
program postgresql-16 $postgres/bin/psql /usr/lib/tools/client/bin/psql
program postgresql-16 $postgres/bin/pg_dump /usr/lib/tools/client/bin/pg_dump
program pgbouncer usr/sbin/pgbouncer /usr/lib/tools/client/bin/pgbouncer
deb postgresql-16 16.14-1 'postgresql-common, pgbouncer' << 'END'
#!/bin/sh
set -e
. /usr/share/postgresql-common/maintscripts-functions
configure_version 16 "$2"
END
printf '[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' \
	> "$stage/pgbouncer/usr/lib/systemd/system/pgbouncer.service"
deb pgbouncer 1.24.1-1 libc6 << 'END'
#!/bin/sh
set -e
systemctl enable pgbouncer
[ ! -d /run/systemd/system ] || { systemctl daemon-reload && systemctl start pgbouncer; }
END
