package backup_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/core/fault"
)

// A database with so many tables that its dump would take the locks of all others is refused before anything is locked, and one
// with somewhat fewer is backed up and verified.
func TestADatabaseWithMoreTablesThanLocksIsRefused(t *testing.T) {
	w := backuptest.NewWith(t, map[string]string{"max_connections": "100", "max_locks_per_transaction": "20"}) // 500 for a database
	const tables = `DO $$ BEGIN FOR n IN %d..%d LOOP EXECUTE format('CREATE TABLE t%%s (n int)', n); END LOOP; END $$`
	for n := 1; n < 450; n += 50 {
		w.Load(fmt.Sprintf(tables, n, n+49))
	}
	if _, err := w.Run(w.Agent, w.Request()); err != nil {
		t.Errorf("with 450 tables: %v", err)
	}
	for n := 451; n < 550; n += 50 {
		w.Load(fmt.Sprintf(tables, n, n+49))
	}
	again := w.Request()
	again.OperationID, again.Filename = "33333333-3333-4333-8333-333333333333", "20260301_120001.sql.gz"
	_, err := w.Run(w.Agent, again)
	if !fault.Has(err, fault.BackupConflict) || !strings.Contains(err.Error(), "the database has 550 tables") ||
		!strings.Contains(err.Error(), "more than 500 ") {
		t.Errorf("with 550 tables: %v", err)
	}
}
