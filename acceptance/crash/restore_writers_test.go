package crash_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
)

// journal is what writers write: two rows in one transaction each time.
const journal = "CREATE TABLE entry (n bigint, conn bigint); CREATE TABLE twin (n bigint)"

// told is a transaction of which a writer was told that it is committed.
type told struct {
	n             int64
	began, answer time.Time
}

// writer writes on one connection after the other: on the next only when the last one is dead.
type writer struct {
	way    string
	db     *sql.DB
	told   []told
	errors int
}

var writing atomic.Int64 // numbers connections and transactions

func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for number := writing.Add(1); err == nil && ctx.Err() == nil; {
			err = w.write(ctx, conn, number)
			time.Sleep(time.Millisecond)
		}
		if ctx.Err() == nil {
			w.errors++
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // whoever saw an error comes anew
		_ = conn.Close()
	}
}

func (w *writer) write(ctx context.Context, conn *sql.Conn, number int64) error {
	one := told{n: writing.Add(1), began: time.Now()}
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil) // a transaction is finished, so that its answer is known
	if err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf("INSERT INTO entry VALUES (%d, %d)", one.n, number), fmt.Sprintf("INSERT INTO twin VALUES (%d)", one.n),
	} {
		if _, err := tx.Exec(statement); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	one.answer = time.Now()
	w.told = append(w.told, one)
	return nil
}

// writers write by every way, two by each, until stop.
func (f *restoreFlow) writers(t *testing.T, w *world) (all []*writer, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range 2 {
		for way, db := range w.ways(t, f.owner()) {
			one := &writer{way: way, db: db}
			all = append(all, one)
			crowd.Go(func() { one.run(ctx) })
		}
	}
	return all, func() {
		cancel()
		crowd.Wait()
	}
}

// written is what a database has of the journal: the connection of each transaction.
type written map[int64]int64

func writtenIn(t *testing.T, db *sql.DB) written {
	t.Helper()
	got := written{}
	for _, row := range rows(t, db, "SELECT n, conn, count(t.n) FROM entry LEFT JOIN twin t USING (n) GROUP BY n, conn") {
		var n, conn, twins int64
		must(fmt.Sscan(strings.Join(row, " "), &n, &conn, &twins))(t)
		if got[n] = conn; twins != 1 {
			t.Errorf("transaction %d has %d of its second row", n, twins)
		}
	}
	return got
}

// replacedBy is what the database holds in whose place a restore has put another one. Nobody else can look.
func (w *world) replacedBy(t *testing.T, f *restoreFlow) written {
	t.Helper()
	name := "replaced_" + strings.ReplaceAll(string(f.operations(t, w.api)[0].ID), "-", "")
	admit := func(may bool) {
		must(w.server.ExecContext(soon(t), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", name, may)))(t)
	}
	admit(true)
	defer admit(false)
	db := must(sql.Open("postgres", w.Server.URL(name)))(t)
	defer db.Close()
	return writtenIn(t, db)
}

// Customers write all the time while their database is restored. Whoever was told that something is committed finds it in one
// database only: in the replaced one, or in the restored one; nobody gets from one into the other without an error.
func TestWritersOverARestore(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	f := &restoreFlow{restorable: &restorable{model: database.Managed, more: journal}, end: operation.Succeeded}
	f.ready(t, w)
	all, stop := f.writers(t, w)
	defer stop()
	reserved := must(f.reserve(t, w.api))(t)
	f.advances(t, w, w.api, reserved, isReady)
	time.Sleep(300 * time.Millisecond)

	begins := time.Now()
	host := must(w.StartAPI(soon(t), work.Before(restores.Kind, "discard")))(t) // so that what is replaced stands
	f.advances(t, w, host, reserved, never)
	dies(t, host.Process, "the end of the switch")
	over := time.Now()
	time.Sleep(time.Second)
	stop()
	before := w.replacedBy(t, f)
	f.repeat(t, w)
	f.check(t, w, w.api)
	after := writtenIn(t, f.inside(t, w))
	for _, one := range all {
		one.check(t, before, after, begins, over)
	}
	conns := map[int64]bool{}
	for _, conn := range before {
		conns[conn] = true
	}
	for n, conn := range after {
		if _, both := before[n]; both || conns[conn] {
			t.Errorf("connection %d has got from one database into the other", conn)
		}
	}
	w.settled(t)
}

// check looks for what the writer was told.
func (w *writer) check(t *testing.T, before, after written, begins, over time.Time) {
	t.Helper()
	var count struct{ before, after int }
	for _, one := range w.told {
		_, old := before[one.n]
		_, restored := after[one.n]
		switch {
		case old == restored:
			t.Errorf("%s: transaction %d is in the replaced database: %t, in the restored one: %t", w.way, one.n, old, restored)
		case one.answer.Before(begins) && !old, one.began.After(over) && !restored:
			t.Errorf("%s: transaction %d is in the wrong database", w.way, one.n)
		case old:
			count.before++
		default:
			count.after++
		}
	}
	if count.before == 0 || count.after == 0 || w.errors == 0 {
		t.Errorf("%s: %+v, %d errors", w.way, count, w.errors)
	}
}

// inside is an administrator's pool of connections to the database.
func (r *restorable) inside(t *testing.T, w *world) *sql.DB {
	t.Helper()
	db := must(sql.Open("postgres", w.Server.URL(r.db.Name)))(t)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(0) // who stays is in the way of a switch
	return db
}
