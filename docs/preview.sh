#!/bin/sh
# Makes the preview database of a ref, or deletes it. Previews are for synthetic test data only.
#
#   preview.sh open REF    prints the connection string of the ref's preview, which is made where there is none
#   preview.sh close REF   has it deleted
#
# PGHERD_BASE_URL is the service's, PGHERD_CI_KEY the preview CI key.
set -eu

# Where there are several attempts, only the last one's answer stays in the file. Nobody else can read it: it has a password.
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
trap 'exit 1' HUP INT TERM

# The key goes to curl by its standard input: a command line can be read by other processes. It prints the status of the answer.
call() {
	printf 'header = "Authorization: Bearer %s"\n' "$PGHERD_CI_KEY" |
		curl --config - --silent --show-error --retry 5 --max-time 120 --output "$answer" --write-out '%{http_code}' \
			--header 'Content-Type: application/json' --request "$1" "$PGHERD_BASE_URL/api/v1$2" ${3:+--data "$3"}
}

fail() {
	printf '%s\n' "$1" >&2
	exit 1
}

case "$#/${1:-}" in 2/open | 2/close) ;; *) fail "usage: preview.sh open|close REF" ;; esac
case $2 in *[!A-Za-z0-9._/-]*) fail "a ref of this script has letters, digits and . _ / - only" ;; esac
# Every request for a ref must choose the same: this script always chooses the service's defaults.
status=$(call POST /previews "{\"ref\":\"$2\"}")

case $1/$status in
open/20[01])
	url=$(jq --raw-output '.connection.connectionString // empty' "$answer")
	[ -n "$url" ] || fail "the password of the preview was changed"
	printf '%s\n' "$url"
	;;
close/20[01])
	status=$(call DELETE "/previews/$(jq --raw-output '.data.databaseId // empty' "$answer")")
	[ "$status" = 202 ] || fail "$status $(cat "$answer")"
	;;
close/409) ;; # its lease has ended, or it is being deleted
close/403) grep -q PLAN_LIMIT "$answer" || fail "$status $(cat "$answer")" ;; # the ref has none, or it would have been found
*) fail "$status $(cat "$answer")" ;;
esac
