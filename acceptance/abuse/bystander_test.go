package abuse_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
)

// The measures of a round.
const (
	queries   = "query"
	logins    = "log-in"
	reads     = "GET"
	creations = "creation"
	downloads = "download"
	backups   = "backup"
	rotations = "rotation"
	stops     = "stop"
)

// measures are in the order of a round.
var measures = []string{queries, logins, reads, creations, downloads, backups, rotations, stops}

// often says how many requests of each kind make a round.
type often map[string]int

var (
	one  = often{queries: 2, logins: 1, reads: 1, creations: 1, downloads: 1, backups: 1, rotations: 1, stops: 1}
	few  = often{queries: 50, logins: 3, reads: 50, creations: 2, downloads: 2, backups: 1, rotations: 2, stops: 2}
	many = often{queries: 1000, logins: 10, reads: 1000, creations: 10, downloads: 10, backups: 10, rotations: 10, stops: 10}
)

// bystander is a customer who does nothing unusual.
type bystander struct {
	*customer
	db      wire.CreatedDatabase
	idle    wire.CreatedDatabase // is stopped and started
	role    wire.RevealedRole
	clients []*sql.DB // open all the time, at both entries
	created int
	last    backup.Filename // the latest
}

// loadRows is what a bystander keeps in its database: some 2 MB that do not compress well.
const loadRows = `CREATE TABLE kept AS SELECT n, md5(n::text) || md5((n + 1)::text) AS text FROM generate_series(1, 30000) n`

func newBystander(t *testing.T, w *world) *bystander {
	t.Helper()
	b := &bystander{customer: w.newCustomer(t, "bystander", "127.0.0.2")}
	var err error
	b.db, err = b.create(soon(t), "bystander")
	noError(t, err)
	b.idle = must(b.create(soon(t), "bystander-idle"))(t)
	b.role = must(b.createRole(soon(t), b.db.ID, "rotated"))(t)
	for _, entry := range []string{b.db.Name, b.db.Name + ".transaction"} {
		b.clients = append(b.clients, w.at(t, entry, b.db.Username, b.db.Password))
	}
	must(b.clients[0].ExecContext(soon(t), loadRows))(t)
	b.last = must(b.backUp(soon(t), b.db.ID))(t)
	return b
}

// does is one request of a measure.
func (b *bystander) does(measure string) func(ctx context.Context, n int) error {
	return map[string]func(context.Context, int) error{
		queries: b.query, logins: b.logIn, reads: b.read, creations: b.createOne, downloads: b.downloadLast,
		backups: b.backUpOne, rotations: func(ctx context.Context, _ int) error { return b.rotate(ctx, b.db.ID, b.role.RoleID) },
		stops: b.stopOne,
	}[measure]
}

// round does everything so often, and returns how long each request took. A request that fails fails the test.
func (b *bystander) round(t *testing.T, times often) map[string][]time.Duration {
	t.Helper()
	took := map[string][]time.Duration{}
	for _, m := range measures {
		for n := range times[m] {
			began := time.Now()
			if err := b.within(t.Context(), func(ctx context.Context) error { return b.does(m)(ctx, n) }); err != nil {
				t.Errorf("the bystander's %s %d after %s: %v", m, n+1, time.Since(began).Round(time.Millisecond), err)
				break
			}
			took[m] = append(took[m], time.Since(began))
		}
		t.Logf("%d of %s: %s at most", len(took[m]), m, short(slices.Max(append(took[m], 0))))
	}
	return took
}

func (b *bystander) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return do(ctx)
}

// query asks in turn at each entry, over a connection that has been open all along.
func (b *bystander) query(ctx context.Context, n int) error {
	var text string
	return b.clients[n%len(b.clients)].QueryRowContext(ctx, "SELECT text FROM kept WHERE n = 1").Scan(&text)
}

func (b *bystander) logIn(ctx context.Context, _ int) error {
	db, err := sql.Open("postgres", b.PoolerURL(b.db.Name, b.db.Username, b.db.Password))
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

func (b *bystander) read(ctx context.Context, _ int) error {
	_, err := b.Databases.Get(ctx, b.db.ID)
	return err
}

func (b *bystander) createOne(ctx context.Context, _ int) error {
	b.created++
	_, err := b.create(ctx, fmt.Sprintf("bystander-%d", b.created))
	return err
}

func (b *bystander) downloadLast(ctx context.Context, _ int) error {
	return b.download(ctx, b.db.ID, b.last)
}

// stopOne also starts it again.
func (b *bystander) stopOne(ctx context.Context, _ int) error {
	for _, action := range []database.Event{database.Stop, database.Start} {
		if _, err := b.Databases.SetLifecycle(ctx, b.idle.ID, wire.SetLifecycle{Action: action}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bystander) backUpOne(ctx context.Context, _ int) error {
	name, err := b.backUp(ctx, b.db.ID)
	if err == nil {
		b.last = name
	}
	return err
}
