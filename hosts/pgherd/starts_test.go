package main_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// What the metadata know of the rings of hosts is of those that run: a start that fails neither adds to it, nor takes away the
// host at whose address it was to be.
func TestAStartThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	metadata, ops := clustertest.NewDatabase(t), freeAddress(t)
	h, db := newHosts(t, metadata.URL), metadata.Open(t)
	runs := h.start(t, "batch", "--ops-listen", ops)
	runs.awaitReady(ops)
	before := ringHosts(t, db)
	if len(before) != 1 {
		t.Fatalf("one host has said what it has: %v", before)
	}
	for _, args := range [][]string{
		{"batch", "--ops-listen", ops},
		{"api", "--ops-listen=127.0.0.1:0", "--listen", ops},
		{"api", "--ops-listen=127.0.0.1:0", "--listen=127.0.0.1:0", "--trusted-proxies=10.0.0"},
	} {
		if failed := h.start(t, args...); failed.exit() != 1 {
			t.Errorf("%v: %s", args, failed.said())
		}
		if now := ringHosts(t, db); !slices.Equal(now, before) {
			t.Errorf("%v: there was %v, and now %v", args, before, now)
		}
	}
	check.NoError(t, runs.Process.Kill())
	runs.exit()
	again := h.start(t, "batch", "--ops-listen", ops)
	again.awaitReady(ops)
	if now := ringHosts(t, db); len(now) != 1 || now[0] == before[0] {
		t.Errorf("started again: %v", now)
	}
}

func ringHosts(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return check.Must(stack.Column(t.Context(), db, "SELECT id || ' ' || name FROM keyring_hosts ORDER BY 1"))(t)
}
