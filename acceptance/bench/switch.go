package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
)

const (
	manyTables   = 10_000
	tablesAtOnce = 500 // in one transaction, whose locks have room then
	mostClosed   = span(2 * time.Second)
	// advancePause keeps a key below its limit of writes.
	advancePause = time.Second
	// mostReservations is below the limit of a key.
	mostReservations = 5
)

// measureSwitch restores a database of many tables, while a client of it logs in over and over. What it cannot is the time that
// the restore closes the database to its customers.
func measureSwitch(ctx context.Context, b *bench) (_ []row, err error) {
	d, tables, err := b.withTables(ctx)
	if err != nil {
		return nil, err
	}
	done, err := stack.BackUp(ctx, b.client.Client, d.ID)
	if err != nil {
		return nil, err
	}
	var closed []time.Duration
	for n := range min(b.runs, mostReservations) {
		o, err := b.client.readyToSwitch(ctx, d.ID, backup.Filename(done.Filename), n)
		if err != nil {
			return nil, err
		}
		c := b.comesAgain(ctx, customer{d.Name, d.Username, d.Password})
		_, err = b.client.advanced(ctx, o, func(o wire.Operation) bool { return o.Status == operation.Succeeded })
		gap, last := c.end()
		if err != nil {
			return nil, err
		}
		if gap == 0 {
			return nil, fmt.Errorf("the client never got in: %w", last)
		}
		closed = append(closed, gap)
	}
	h, err := b.byHand(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	byHand, err := h.swap(ctx, d.Name)
	what := fmt.Sprintf("a restore of %d tables closes the database (longest of %d), against renames by hand", tables, len(closed))
	return []row{below(what, span(slices.Max(closed)), byHand, mostClosed)}, err
}

// swap puts a database in the place of another and back again, and returns how long each of them took.
func (h byHand) swap(ctx context.Context, name string) (span, error) {
	const copied, away = "copied_by_hand", "away_by_hand"
	if err := h.do(ctx, "CREATE DATABASE "+copied+" TEMPLATE template0"); err != nil {
		return 0, err
	}
	began := time.Now()
	for _, put := range [][2]string{{copied, away}, {away, copied}} {
		err := h.do(ctx, "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = "+pq.QuoteLiteral(name),
			"BEGIN", "ALTER DATABASE "+ident(name)+" RENAME TO "+put[1]+"_now", "ALTER DATABASE "+put[0]+" RENAME TO "+ident(name),
			"ALTER DATABASE "+put[1]+"_now RENAME TO "+put[1], "COMMIT")
		if err != nil {
			return 0, err
		}
	}
	return span(time.Since(began) / 2), h.do(ctx, "DROP DATABASE "+copied)
}

// withTables makes a database of many tables whose backups are verified.
func (b *bench) withTables(ctx context.Context) (d wire.CreatedDatabase, tables int, err error) {
	if err = b.withBatch(ctx); err != nil {
		return d, 0, err
	}
	if d, err = b.client.create(ctx, "tables"); err != nil {
		return d, 0, err
	}
	tables = max(1, int(b.scale*manyTables))
	for first := 1; first <= tables && err == nil; first += tablesAtOnce {
		err = b.sqlIn(ctx, d.Name, fmt.Sprintf(`DO $$ BEGIN SET LOCAL ROLE %s; FOR n IN %d..%d LOOP
			EXECUTE format('CREATE TABLE t%%s (id int PRIMARY KEY, word text NOT NULL)', n); END LOOP; END $$`,
			ident(d.Username), first, min(tables, first+tablesAtOnce-1)))
	}
	return d, tables, errors.Join(err, b.verifyBackups(ctx, true))
}

// readyToSwitch reserves a restore, and advances it to where the next advance switches.
func (c client) readyToSwitch(ctx context.Context, of id.DatabaseID, file backup.Filename, n int) (id.OperationID, error) {
	reserved, err := c.Restores.Reserve(ctx, of, wire.ReserveRestore{BackupFilename: file, ConfirmShrink: true})
	if err != nil {
		return "", fmt.Errorf("restore %d: %w", n, err)
	}
	ready := func(o wire.Operation) bool { return o.Stage == string(restore.Ready) }
	_, err = c.advanced(ctx, reserved.Operation.ID, ready)
	return reserved.Operation.ID, err
}

func (c client) advanced(ctx context.Context, o id.OperationID, enough func(wire.Operation) bool) (wire.Operation, error) {
	for {
		now, err := c.Restores.Advance(ctx, o)
		if err != nil || enough(now) {
			return now, err
		}
		time.Sleep(advancePause)
	}
}

// comer is a client that logs in over and over.
type comer struct {
	give   context.CancelFunc // up
	enough chan struct{}
	ended  sync.WaitGroup
	gap    time.Duration
	failed error
}

func (b *bench) comesAgain(ctx context.Context, who customer) *comer {
	c := &comer{enough: make(chan struct{})}
	ctx, c.give = context.WithCancel(ctx)
	c.ended.Go(func() { c.come(ctx, func() error { return b.comesIn(ctx, who) }) })
	return c
}

// come ends with a log-in that began when it was enough.
func (c *comer) come(ctx context.Context, in func() error) {
	for last, over := (time.Time{}), false; ctx.Err() == nil; {
		select {
		case <-c.enough:
			over = true
		default:
		}
		if err := in(); err != nil {
			c.failed = err
			time.Sleep(time.Millisecond)
			continue
		}
		now := time.Now()
		if !last.IsZero() {
			c.gap = max(c.gap, now.Sub(last))
		}
		if last = now; over {
			return
		}
	}
}

func (b *bench) comesIn(ctx context.Context, who customer) error {
	db, err := sql.Open("postgres", b.stack.PoolerURL(who.Database, who.Username, who.Password))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "SELECT FROM t1")
	return errors.Join(err, db.Close())
}

// comerPatience is how long the last log-in may take.
const comerPatience = time.Minute

// end returns the longest time between two log-ins, and the last failure.
func (c *comer) end() (time.Duration, error) {
	late := time.AfterFunc(comerPatience, c.give)
	close(c.enough)
	c.ended.Wait()
	late.Stop()
	c.give()
	return c.gap, c.failed
}
