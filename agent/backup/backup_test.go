package backup_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/store"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestEverythingComesBackEqual(t *testing.T) {
	w := newWorld(t)
	w.LoadRich()
	result := check.Must(w.Run(w.Agent, w.Request()))(t)
	if result.VerifiedAt == nil {
		t.Error("not verified")
	}
	w.LeavesNothing()
	m := result.Manifest
	c := m.Contents
	if c.Rows["sales.customer"] != 502 || c.Rows["sales.base"] != 1 || c.Rows["sales.derived"] != 2 || c.LargeObjects != 3 {
		t.Errorf("rows %v, %d large objects", c.Rows, c.LargeObjects)
	}
	listed := map[string]bool{}
	check.NoError(t, c.Objects.Each(func(o core.Object) {
		listed[o.Kind] = true
		for said := range strings.SplitSeq(o.What, ", ") {
			kind, _, _ := strings.Cut(said, " (")
			listed[o.Kind+": "+kind] = true
		}
	}))
	for _, kind := range []string{
		"policy", "generated column", "identity column", "table: partitioned", "inheritance", "materialized view: populated",
		"procedure", "aggregate", "operator", "cast", "rule", "trigger", "type: enum", "type: domain", "type: range", "type: columns",
		"foreign key", "exclusion constraint", "publication", "publication relation", "statistics object",
		"table: forced row security", "collation", "text search configuration", "table: unlogged",
	} {
		if !listed[kind] {
			t.Errorf("no %s is in the list", kind)
		}
	}
	if got := c.Sequences[`"Weird schema; ""quoted"""."seq; 'odd'"`]; got.Last != -5 || !got.Called {
		t.Errorf("sequences %v", c.Sequences)
	}
	if !m.HasRoles() || len(m.Grants) == 0 || len(m.Logins) != 2 || m.Logins[0].MemberOf[0] != "shop reader" {
		t.Errorf("logins %+v, %d grants", m.Logins, len(m.Grants))
	}
	for _, g := range m.Grants {
		if strings.HasPrefix(g.Grantee, "dump_") {
			t.Errorf("the manifest has the login of the dump: %+v", g)
		}
	}
	if len(m.Settings) != 2 || m.Settings[0].Value != "1ms" || m.Settings[1].Login != "shop" {
		t.Errorf("settings %+v", m.Settings)
	}
}

func TestTheFileIsPortable(t *testing.T) {
	w := newWorld(t)
	w.LoadRich()
	w.Backup(w.Request())
	text := w.Text()
	for _, never := range []string{"transaction_timeout", "OWNER TO", "\nGRANT ", "\nREVOKE ", "shop reader", "TO shop"} {
		if strings.Contains(text, never) {
			t.Errorf("the file holds %q", never)
		}
	}
	bare := clustertest.New(t, nil)
	w.PSQL(bare.URL("postgres"), text)
	var rows int
	db := clustertest.Database{URL: bare.URL("postgres")}.Open(t)
	if err := db.QueryRow(`SELECT count(*) FROM sales.customer`).Scan(&rows); err != nil || rows != 502 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestRunAgainMakesNothingAgain(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	first := check.Must(w.Run(w.Agent, w.Request()))(t)
	again := check.Must(w.Run(backuptest.NewAgent(w.Config(), w.Store(store.Options{Reserve: 1})), w.Request()))(t)
	if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	other := w.Request()
	other.OperationID = "33333333-3333-4333-8333-333333333333"
	if _, err := w.Run(w.Agent, other); !fault.Has(err, fault.BackupConflict) {
		t.Errorf("another operation with the same file name: %v", err)
	}
}

func TestAnUnknownDatabaseIsSaidSo(t *testing.T) {
	w := newWorld(t)
	req := w.Request()
	req.Database = "no_such_database"
	if _, err := w.Run(w.Agent, req); !fault.Has(err, fault.DatabaseNotFound) {
		t.Errorf("%v", err)
	}
}

// The copy that verifies a backup is made beside the databases. It must not take the room that they need.
func TestACopyNeedsRoomBesideTheDatabases(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	full := true
	disk := func(path string) (store.Disk, error) {
		if path == "/databases" && full {
			return store.Disk{ID: 2, Free: 1 << 20}, nil // less than the smallest database
		}
		return store.Disk{ID: 1, Free: 1 << 40}, nil
	}
	config := w.Config()
	config.DataDir = "/databases"
	agent := backuptest.NewAgent(config, w.Store(store.Options{Reserve: 1, Disk: disk}))
	if _, err := w.Run(agent, w.Request()); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("without room for the copy: %v", err)
	}
	without := w.Request()
	without.Verify = false
	if _, err := w.Run(agent, without); err != nil {
		t.Errorf("without a copy: %v", err)
	}
	full = false
	if _, err := w.Run(agent, w.Request()); err != nil {
		t.Errorf("with room: %v", err)
	}
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT md5(n::text) || md5((-n)::text) AS v FROM generate_series(1, 700000) n`)
	var full atomic.Bool                       // the file's writer looks at the disk, and the watch of the dump
	disk := func(string) (store.Disk, error) { // full after the dump was let in
		if begun, err := filepath.Glob(filepath.Join(w.Root, "spool", "*.data")); err != nil || len(begun) == 0 {
			return store.Disk{ID: 1, Free: 1 << 40}, err
		}
		full.Store(true)
		return store.Disk{ID: 1, Free: 0}, nil
	}
	files := w.Store(store.Options{Reserve: 1, Disk: disk})
	_, err := w.Run(backuptest.NewAgent(w.Config(), files), w.Request())
	if !fault.Has(err, fault.BackupStorageFull) {
		t.Fatalf("%v", err)
	}
	if !full.Load() {
		t.Fatal("the dump was too small to fill the disk")
	}
	w.nothingLeft()
	var running strings.Builder
	check.NoError(t, pprof.Lookup("goroutine").WriteTo(&running, 1))
	if strings.Contains(running.String(), "pgzip") {
		t.Error("the compressor still runs")
	}
}

// away is a folder that cannot be reached.
type away struct {
	*blob.Folder
	atomic.Bool
}

func (a *away) Move(ctx context.Context, path, name string) error {
	if a.Load() {
		return syscall.ECONNREFUSED
	}
	return a.Folder.Move(ctx, path, name)
}

func TestABackupThatCannotBeStoredLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	blobs := &away{Folder: blob.NewFolder(w.Root)}
	blobs.Store(true)
	w.Files = w.Store(store.Options{Reserve: 1, Blobs: blobs})
	config := w.Config()
	config.Patience = time.Millisecond
	w.Agent = w.NewAgent(config)
	if _, err := w.Run(w.Agent, w.Request()); !fault.Has(err, fault.BackupStorageUnavailable) {
		t.Errorf("%v", err)
	}
	w.nothingLeft()
	blobs.Store(false)
	if result := w.Backup(w.Request()); result.VerifiedAt == nil {
		t.Error("not verified")
	}
}

func TestACanceledBackupLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 300000) n`)
	for _, stage := range []string{"dumping", copies.StageVerifying} {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := w.Agent.Run(ctx, w.Request(), func(now string, _ int, _ command.Bytes) {
			if now == stage {
				cancel()
			}
		})
		if err == nil || fault.Has(err, fault.BackupNotVerified) {
			t.Errorf("canceled while %s: %v", stage, err)
		}
		if left := w.Leftovers(); left != "" {
			t.Errorf("canceled while %s leaves %s", stage, left)
		}
	}
}

// A customer who keeps a table locked holds a backup up for a bounded time.
func TestALockedTableIsNotWaitedForForEver(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	tx := check.Must(w.Open(t).Begin())(t)
	defer tx.Rollback() // it only holds the lock
	check.Must(tx.Exec("LOCK TABLE t IN ACCESS EXCLUSIVE MODE"))(t)
	config := w.Config()
	config.LockWait = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := backuptest.NewAgent(config, w.Files).Run(ctx, w.Request(), backuptest.Unseen)
	if err == nil || ctx.Err() != nil || fault.Has(err, fault.BackupConflict) { // which would come of ten tries
		t.Errorf("with a table locked: %v, %v", err, ctx.Err())
	}
	var told interface{ ForCustomer() string }
	if !errors.As(err, &told) || told.ForCustomer() != "public.t stayed locked for 200ms; end the transaction that holds the lock" {
		t.Errorf("nothing to tell the customer: %v", err)
	}
	w.LeavesNothing()
}

// Rows and sequences go on while the dump runs; file and manifest are of one moment all the same.
func TestABusyDatabaseComesBackEqual(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE a (id bigserial PRIMARY KEY, v text); CREATE TABLE b (id bigserial, v text);
		INSERT INTO a (v) SELECT md5(n::text) FROM generate_series(1, 100000) n`)
	db := w.Open(t)
	ctx, stop := context.WithCancel(t.Context())
	written, busy := 0, make(chan struct{})
	go func() {
		defer close(busy)
		for ctx.Err() == nil {
			if _, err := db.Exec(`WITH x AS (INSERT INTO a (v) SELECT 'more' FROM generate_series(1, 10) RETURNING v)
				INSERT INTO b (v) SELECT v FROM x`); err == nil {
				written += 10
			}
		}
	}()
	result, err := w.Run(w.Agent, w.Request())
	stop()
	<-busy
	if err != nil {
		t.Fatal(err)
	}
	rows := result.Manifest.Contents.Rows
	if rows["public.a"]-100000 != rows["public.b"] || rows["public.b"] >= int64(written) {
		t.Errorf("rows %v, %d written in all", rows, written)
	}
}
