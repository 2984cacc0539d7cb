package dev_test

import (
	"cmp"
	"os"
	"strings"
)

// comeAndGo makes previews, lets their leases end, and lets the time pass in which they can be recovered.
const comeAndGo = `set -a; . .pgherd/dev/env; set +a
	post() { curl -fsS -X POST -H "Authorization: Bearer $PGHERD_CI_KEY" -H 'Content-Type: application/json' "$@"; }
	ahead=0 # by how many seconds the service's clock is
	later() { post "$PGHERD_OPS_URL/dev/clock" -d "{\"advanceSeconds\": $1}" >/dev/null; ahead=$((ahead + $1)); }
	known() { psql "$PGHERD_METADATA_URL" -Atc "SELECT count(*) FROM $1"; }
	due_in() { # in how many seconds the first or the last can be purged
		psql "$PGHERD_METADATA_URL" -Atc "SELECT ceil(extract(epoch FROM $1(purge_after) - now()))::int - $ahead FROM tombstones"
	}
	until_known() {
		for _ in $(seq 6000); do [ "$(known "$1")" = "$2" ] && return; sleep 0.1; done
		echo "not in time: $1" >&2; return 1
	}
	"$PGHERD" admin account set --account "$PGHERD_ACCOUNT_ID" --max-databases 1000 >/dev/null
	for n in $(seq "$COUNT"); do
		post "$PGHERD_BASE_URL/api/v1/previews" -d "{\"ref\": \"pull/$n\", \"ttlHours\": 1}" >/dev/null
	done
	began=$SECONDS
	later 3600; until_known "previews WHERE lease_status = 'deleted'" "$COUNT"
	took=$((SECONDS - began))
	# A day and an hour, an hour, and ten minutes before the time of the one that was deleted first; two rounds pass there.
	later $(($(due_in min) - 25 * 3600)); later $((24 * 3600)); later $((3600 - 600)); sleep 4
	[ "$(known "operations WHERE kind = 'purge'")" = 0 ] || { echo 'purged too early' >&2; exit 1; }
	began=$SECONDS
	later $(($(due_in max) + 25 * 3600)); until_known previews 0; until_known tombstones 0
	echo "$COUNT previews ended in $took s, and were purged in $((SECONDS - began)) s" >&2
	psql "$PGHERD_SERVER_URL" -Atc "SELECT datname FROM pg_database WHERE datname ~ '^(deleted_|preview-)'
		UNION SELECT rolname FROM pg_roles WHERE rolname ~ '^preview-'"
	"$PGHERD" admin doctor --deep --json`

// Previews end by themselves, are purged when their time is over and not before, and nothing of them is left. PGHERD_PREVIEWS
// says how many, by default few.
func (d *developer) previewsComeAndGo() {
	d.t.Helper()
	count := cmp.Or(os.Getenv("PGHERD_PREVIEWS"), "3")
	out := d.shell("export COUNT=" + count + " PGHERD=" + d.program + "\n" + comeAndGo)
	d.t.Log(out)
	if _, left, _ := strings.Cut(out, " s\n"); strings.TrimSpace(left) != "[]" {
		d.t.Errorf("something is left:\n%s", left)
	}
}
