package copies_test

import (
	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"

	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Large tables are frozen as they are restored, but not where something of the customer's could see it. All come back equal.
func TestWhichTablesAreFrozen(t *testing.T) {
	w := newWorld(t)
	const many = ` SELECT n FROM generate_series(1, 10000) n;`
	w.Load(`CREATE TABLE "Plain ""one""" AS` + many + `CREATE TABLE few AS SELECT n FROM generate_series(1, 9999) n;
		CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE TABLE of_domain (n positive); INSERT INTO of_domain` + many + `
		CREATE TABLE checked (n int CHECK (n > 0)); INSERT INTO checked` + many + `
		CREATE TABLE generated (n int, twice int GENERATED ALWAYS AS (n * 2) STORED); INSERT INTO generated` + many + `
		CREATE TABLE parted (n int) PARTITION BY RANGE (n); CREATE TABLE part PARTITION OF parted FOR VALUES FROM (1) TO (10001);
		INSERT INTO parted` + many + `CREATE TABLE keyed (n int PRIMARY KEY); INSERT INTO keyed` + many)
	made := w.Request()
	made.Verify = false
	w.Backup(made)
	req := w.loading(1, "")
	req.Rows = true
	check.Must(w.Agent.Copies.Load(t.Context(), req, backuptest.Unseen))(t)
	// Who freezes a page also enters it in the table's map of visible pages.
	const query = `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid, 'vm') > 0`
	var frozen string
	copied := clustertest.Database{URL: w.Cluster.URL("restore_" + id.Compact(req.OperationID))}.Open(t)
	check.NoError(t, copied.QueryRow(query).Scan(&frozen))
	_ = copied.Close()
	if frozen != `Plain "one" keyed part` {
		t.Errorf("frozen are: %s", frozen)
	}
	if err := w.Agent.Copies.Discard(t.Context(), req.OperationID); err != nil {
		t.Error(err)
	}
}
