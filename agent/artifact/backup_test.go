package artifact_test

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestEverythingComesBackEqual(t *testing.T) {
	w := newWorld(t)
	w.loadRich()
	result, err := w.run(w.agent, w.request())
	if err != nil {
		t.Fatal(err)
	}
	if result.VerifiedAt == nil {
		t.Error("not verified")
	}
	if left := w.leftovers(); left != "" {
		t.Errorf("left behind: %s", left)
	}
	m := result.Manifest
	c := m.Contents
	if c.Rows["sales.customer"] != 502 || c.Rows["sales.base"] != 1 || c.Rows["sales.derived"] != 2 || c.LargeObjects != 3 {
		t.Errorf("rows %v, %d large objects", c.Rows, c.LargeObjects)
	}
	for _, kind := range []string{
		"policy", "generated column", "identity column", "partitioned table", "inheritance", "materialized view",
		"populated materialized view", "procedure", "aggregate", "operator", "cast", "rule", "trigger", "enum", "domain", "range type",
		"composite type", "foreign key", "exclusion constraint", "publication", "statistics object", "table with forced row security",
		"collation", "text search configuration", "unlogged table",
	} {
		if c.Objects[kind] == 0 {
			t.Errorf("no %s was counted", kind)
		}
	}
	if got := c.Sequences[`"Weird schema; ""quoted"""."seq; 'odd'"`]; got.Last != -5 || !got.Called {
		t.Errorf("sequences %v", c.Sequences)
	}
	if !m.HasRoles() || len(m.Grants) == 0 || len(m.Logins) != 2 || m.Logins[0].MemberOf[0] != "shop reader" {
		t.Errorf("logins %+v, %d grants", m.Logins, len(m.Grants))
	}
	if len(m.Settings) != 2 || m.Settings[0].Value != "1ms" || m.Settings[1].Login != "shop" {
		t.Errorf("settings %+v", m.Settings)
	}
}

func TestTheFileIsPortable(t *testing.T) {
	w := newWorld(t)
	w.loadRich()
	if _, err := w.run(w.agent, w.request()); err != nil {
		t.Fatal(err)
	}
	text := w.text()
	for _, never := range []string{"transaction_timeout", "OWNER TO", "\nGRANT ", "\nREVOKE ", "shop reader", "TO shop"} {
		if strings.Contains(text, never) {
			t.Errorf("the file holds %q", never)
		}
	}
	bare := clustertest.New(t, nil)
	w.psql(bare.URL("postgres"), text)
	var rows int
	db := clustertest.Database{URL: bare.URL("postgres")}.Open(t)
	if err := db.QueryRow(`SELECT count(*) FROM sales.customer`).Scan(&rows); err != nil || rows != 502 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestRunAgainMakesNothingAgain(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	first, err := w.run(w.agent, w.request())
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.run(artifact.New(w.config(), w.open(store.Options{Reserve: 1})), w.request())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	other := w.request()
	other.OperationID = "33333333-3333-4333-8333-333333333333"
	if _, err := w.run(w.agent, other); !fault.Has(err, fault.BackupConflict) {
		t.Errorf("another operation with the same file name: %v", err)
	}
}

func TestAnUnknownDatabaseIsSaidSo(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Database = "no_such_database"
	if _, err := w.run(w.agent, req); !fault.Has(err, fault.DatabaseNotFound) {
		t.Errorf("%v", err)
	}
}

// The copy that verifies a backup is made beside the databases. It must not take the room that they need.
func TestACopyNeedsRoomBesideTheDatabases(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (n int)`)
	full := true
	disk := func(path string) (store.Disk, error) {
		if path == "/databases" && full {
			return store.Disk{ID: 2, Free: 1 << 20}, nil // less than the smallest database
		}
		return store.Disk{ID: 1, Free: 1 << 40}, nil
	}
	config := w.config()
	config.DataDir = "/databases"
	agent := artifact.New(config, w.open(store.Options{Reserve: 1, Disk: disk}))
	if _, err := w.run(agent, w.request()); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("without room for the copy: %v", err)
	}
	without := w.request()
	without.Verify = false
	if _, err := w.run(agent, without); err != nil {
		t.Errorf("without a copy: %v", err)
	}
	full = false
	if _, err := w.run(agent, w.request()); err != nil {
		t.Errorf("with room: %v", err)
	}
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT md5(n::text) || md5((-n)::text) AS v FROM generate_series(1, 700000) n`)
	var full atomic.Bool                       // the file's writer looks at the disk, and the watch of the dump
	disk := func(string) (store.Disk, error) { // full after the dump was let in
		if begun, err := filepath.Glob(filepath.Join(w.root, "*", "*.partial")); err != nil || len(begun) == 0 {
			return store.Disk{ID: 1, Free: 1 << 40}, err
		}
		full.Store(true)
		return store.Disk{ID: 1, Free: 0}, nil
	}
	files := w.open(store.Options{Reserve: 1, Disk: disk})
	_, err := w.run(artifact.New(w.config(), files), w.request())
	if !fault.Has(err, fault.BackupStorageFull) {
		t.Fatalf("%v", err)
	}
	if !full.Load() {
		t.Fatal("the dump was too small to fill the disk")
	}
	left, err := filepath.Glob(filepath.Join(w.root, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if left := w.leftovers(); left != "" {
		t.Errorf("left behind: %s", left)
	}
	var running strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&running, 1); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(running.String(), "pgzip") {
		t.Error("the compressor still runs")
	}
}

func TestNoRoomIsRefusedBeforeTheDump(t *testing.T) {
	w := newWorld(t)
	w.load(`SELECT 1`)
	files := w.open(store.Options{Reserve: 1 << 62})
	if _, err := w.run(artifact.New(w.config(), files), w.request()); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(w.root, string(databaseID))); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
}

func TestACanceledBackupLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 300000) n`)
	for _, stage := range []string{artifact.StageDumping, artifact.StageVerifying} {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := w.agent.Run(ctx, w.request(), func(now string, _ int, _ command.Bytes) {
			if now == stage {
				cancel()
			}
		})
		if err == nil || fault.Has(err, fault.BackupNotVerified) {
			t.Errorf("canceled while %s: %v", stage, err)
		}
		if left := w.leftovers(); left != "" {
			t.Errorf("canceled while %s leaves %s", stage, left)
		}
	}
}

// A customer who keeps a table locked holds a backup up for a bounded time.
func TestALockedTableIsNotWaitedForForEver(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (n int)`)
	tx, err := w.Open(t).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // it only holds the lock
	if _, err := tx.Exec("LOCK TABLE t IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.LockWait = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = artifact.New(config, w.files).Run(ctx, w.request(), unseen)
	if err == nil || ctx.Err() != nil {
		t.Errorf("with a table locked: %v, %v", err, ctx.Err())
	}
	var told interface{ ForCustomer() string }
	if !errors.As(err, &told) || told.ForCustomer() != "a table stayed locked for 200ms; end the transaction that holds the lock" {
		t.Errorf("nothing to tell the customer: %v", err)
	}
	if left := w.leftovers(); left != "" {
		t.Errorf("it leaves %s", left)
	}
}

// What the portable file leaves out stands in the sidecar, which is of the same snapshot.
func TestTheSidecarHasOwnersAndPrivileges(t *testing.T) {
	w := newWorld(t)
	w.loadRich()
	req := w.request()
	req.Verify = false
	result, err := w.run(w.agent, req)
	if err != nil {
		t.Fatal(err)
	}
	file, size, err := w.files.OpenSidecar(databaseID, filename)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.New()
	zip, err := gzip.NewReader(io.TeeReader(file, sum))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ALTER TABLE sales.customer OWNER TO shop;", `GRANT SELECT ON TABLE sales.base TO "shop reader";`,
		`CREATE POLICY mine ON sales.secret FOR SELECT TO shop, "shop reader" USING`, "ALTER DEFAULT PRIVILEGES FOR ROLE shop",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the sidecar has no %q", want)
		}
	}
	if m := result.Manifest.Sidecar; m.SizeBytes != size || m.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("the manifest says %+v of %d bytes", m, size)
	}
}

// Rows and sequences go on while the dump runs; file and manifest are of one moment all the same.
func TestABusyDatabaseComesBackEqual(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE a (id bigserial PRIMARY KEY, v text); CREATE TABLE b (id bigserial, v text);
		INSERT INTO a (v) SELECT md5(n::text) FROM generate_series(1, 100000) n`)
	db := w.Open(t)
	ctx, stop := context.WithCancel(t.Context())
	written, busy := 0, make(chan struct{})
	go func() {
		defer close(busy)
		for ctx.Err() == nil {
			const both = `WITH x AS (INSERT INTO a (v) SELECT 'more' FROM generate_series(1, 10) RETURNING v)
				INSERT INTO b (v) SELECT v FROM x`
			if _, err := db.Exec(`SET statement_timeout = 0; ` + both); err == nil {
				written += 10
			}
		}
	}()
	result, err := w.run(w.agent, w.request())
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
