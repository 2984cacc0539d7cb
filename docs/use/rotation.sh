#!/bin/sh
# Replaces what an application logs in with, while it works.
#
#   rotation.sh role DATABASE OLD NEW COMMAND...     has it use a new role with the access of the role OLD, which is deleted
#   rotation.sh login DATABASE LOGIN COMMAND...      gives runtime or readonly a new password; a role stands in meanwhile
#
# COMMAND gets host, port, database, username and password as JSON on its standard input. It has the application log in with them,
# and ends with status 0 once nothing uses others. Where the script has failed, it can be run again.
set -eu

fail() {
	printf '%s\n' "$1" >&2
	exit 1
}

# of ROLE FIELD prints a field of a role; nothing where there is no such role.
of() { svc managed custom-list "$database" --jq ".[] | select(.displayName == \"$1\").$2"; }

# make ROLE PROFILE CONNECTIONS makes a role, unless there is one with that access.
make() {
	case $(of "$1" accessProfile) in
	"$2") ;; # Where its making was interrupted, it goes on below.
	'') svc managed custom-create "$database" "$1" --access-profile "$2" --connection-limit "$3" >/dev/null ;;
	*) fail "$1 is there with other access than $2" ;;
	esac
	case $(of "$1" status) in reserved) svc managed custom-prepare "$database" "$1" >/dev/null ;; esac
	case $(of "$1" status) in sql_ready) svc managed custom-admit "$database" "$1" >/dev/null ;; esac
}

usage() { fail "usage: rotation.sh role DATABASE OLD NEW COMMAND... | login DATABASE LOGIN COMMAND..."; }

case "${1:-}/$#" in
role/[0-4] | login/[0-3]) usage ;;
role/* | login/*) database=$2 ;;
*) usage ;;
esac

# Passwords go from a variable into a pipe: a command line can be read by other processes.
case $1 in
role)
	old=$3 new=$4
	case $old$new in *[!A-Za-z0-9._-]*) fail "the names of roles of this script have letters, digits and . _ - only" ;; esac
	[ "$old" != "$new" ] || fail "NEW must be another role than OLD, which is deleted"
	shift 4
	profile=$(of "$old" accessProfile)
	[ -n "$profile" ] || fail "$database has no role $old"
	make "$new" "$profile" "$(of "$old" connectionLimit)"
	login=$(svc managed custom-credentials "$database" "$new" --json)
	printf '%s\n' "$login" | "$@"
	svc managed custom-delete "$database" "$old" --yes
	;;
login)
	rotated=$3 other=$3-stand-in
	case $rotated in
	runtime) profile=read_write ;;
	readonly) profile=read_only ;;
	*) fail "LOGIN is runtime or readonly" ;;
	esac
	shift 3
	make "$other" "$profile" "${STAND_IN_CONNECTIONS:-10}"
	login=$(svc managed custom-credentials "$database" "$other" --json)
	printf '%s\n' "$login" | "$@"
	svc managed logins-rotate "$database" "$rotated" --yes --wait
	login=$(svc managed logins-credentials "$database" "$rotated" --json)
	printf '%s\n' "$login" | "$@"
	svc managed custom-delete "$database" "$other" --yes
	;;
esac
