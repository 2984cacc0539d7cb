package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

const (
	leavingBytes = textBytes / 10
	// mostToDelete is times what the same takes by hand, and mostToRecover what a customer waits for.
	mostToDelete  = 1.5
	mostToRecover = 2 * time.Second
	leavingPause  = 20 * time.Millisecond
)

// measureDeletion deletes a database through the API, from the request until the operation has succeeded, and recovers it, until
// its owner is in. What counts by hand:
//
//   - delete: a dump into a file and, as the deletion backup is verified, from that into a new database; the logins shut, the
//     database's sessions ended, it is renamed and closed in one transaction; a RELOAD of PgBouncer.
//   - recover: the name, the connections and the logins in one transaction; a RELOAD; a log-in to PostgreSQL.
//
// Nothing of that is recorded anywhere, no contents are compared, nobody is waited for, and PgBouncer's files stay.
func measureDeletion(ctx context.Context, b *bench) (_ []row, err error) {
	if err := b.withBatch(ctx); err != nil {
		return nil, err
	}
	h, err := newLeavingByHand(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	made, err := b.client.create(ctx, "leaving")
	if err != nil {
		return nil, err
	}
	for _, route := range []string{"delete", "recover"} {
		if _, err := b.stack.Admin(ctx, "enroll", "--database", string(made.ID), "--route", route); err != nil {
			return nil, err
		}
	}
	size, err := fill(ctx, b.stack.Server, made.Name, int(b.scale*leavingBytes))
	if err != nil {
		return nil, err
	}
	l := leaving{b, made}
	steps := func(do func(context.Context) error) func(int) error { return func(int) error { return do(ctx) } }
	gone, err := inTurn((b.runs+1)/2,
		way{measured: steps(l.leave), after: steps(l.comeBack)}, way{measured: steps(h.leave), after: steps(h.comeBack)})
	if err != nil {
		return nil, err
	}
	back, err := inTurn(b.runs,
		way{before: steps(l.leave), measured: steps(l.comeBack)}, way{before: steps(h.leave), measured: steps(h.comeBack)})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("deletion of a database of %s against dump, restore, and SQL by hand", amount(size))
	recovered := told(fmt.Sprintf("  its recovery until the owner is in (median of %d)", len(back.ours)), back.ours, back.byHand)
	recovered.limit, recovered.met = "< "+span(mostToRecover).String(), median(back.ours) < mostToRecover
	return []row{gone.row(what, mostToDelete), recovered}, nil
}

// leaving is a database that is deleted and recovered through the API.
type leaving struct {
	bench *bench
	made  wire.CreatedDatabase
}

func (l leaving) leave(ctx context.Context) error {
	begun, err := l.bench.client.Databases.Delete(ctx, l.made.ID)
	return l.bench.client.succeeds(ctx, begun.Operation.ID, err)
}

func (l leaving) comeBack(ctx context.Context) error {
	begun, err := l.bench.client.Databases.Recover(ctx, l.made.ID)
	if err := l.bench.client.succeeds(ctx, begun.Operation.ID, err); err != nil {
		return err
	}
	return getsIn(ctx, l.bench.stack.PoolerURL(l.made.Name, l.made.Username, l.made.Password))
}

func (c client) succeeds(ctx context.Context, o id.OperationID, begun error) error {
	if begun != nil {
		return begun
	}
	ended, err := c.Operations.Await(ctx, o, leavingPause)
	if err == nil && ended.Status != operation.Succeeded {
		err = fmt.Errorf("the operation is %s: %+v", ended.Status, ended.Error)
	}
	return err
}

func getsIn(ctx context.Context, url string) error {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

// leavingByHand does the same with a database like it.
type leavingByHand struct {
	*plainRoles
	file    string
	logins  []string
	renamed string
}

func newLeavingByHand(ctx context.Context, b *bench) (*leavingByHand, error) {
	plain, err := newPlainRoles(ctx, b, "left-by-hand")
	if err != nil {
		return nil, err
	}
	n := database.RoleNames(plain.db.ID, plain.db.Name)
	h := &leavingByHand{
		plainRoles: plain, file: b.path("left-by-hand.sql.gz"), renamed: "left_by_hand",
		logins: []string{n.Owner, n.Runtime, n.Readonly},
	}
	_, err = fill(ctx, b.stack.Server, h.db.Name, int(b.scale*leavingBytes))
	return h, err
}

func (h *leavingByHand) leave(ctx context.Context) error {
	const copied = "checked_by_hand"
	if err := h.bench.sql(ctx, "CREATE DATABASE "+copied+" TEMPLATE template0"); err != nil {
		return err
	}
	const script = `"$PG_DUMP" --no-owner --no-privileges "$1" | sed '1,30{/^SET transaction_timeout/d}' | gzip -6 > "$2"
		gunzip -c "$2" | "$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 "$3"`
	_, err := h.bench.byHand(ctx, script, h.bench.at(h.db.Name), h.file, h.bench.at(copied))
	if err = errors.Join(err, h.bench.sql(ctx, "DROP DATABASE "+copied), os.Remove(h.file)); err != nil {
		return err
	}
	if err := transact(ctx, h.super, h.loginsAre("NOLOGIN")); err != nil {
		return err
	}
	const end = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = $1"
	if _, err := h.super.ExecContext(ctx, end, h.db.Name); err != nil {
		return err
	}
	return errors.Join(transact(ctx, h.super, []string{
		"ALTER DATABASE " + ident(h.db.Name) + " RENAME TO " + h.renamed,
		"ALTER DATABASE " + h.renamed + " ALLOW_CONNECTIONS false",
	}), run(ctx, h.console, "RELOAD"))
}

func (h *leavingByHand) comeBack(ctx context.Context) error {
	err := transact(ctx, h.super, append([]string{
		"ALTER DATABASE " + h.renamed + " ALLOW_CONNECTIONS true",
		"ALTER DATABASE " + h.renamed + " RENAME TO " + ident(h.db.Name),
	}, h.loginsAre("LOGIN")...))
	if err := errors.Join(err, run(ctx, h.console, "RELOAD")); err != nil {
		return err
	}
	return getsIn(ctx, h.bench.stack.Server.URLFor(h.db.Username, h.db.Password, h.db.Name))
}

func (h *leavingByHand) loginsAre(what string) (all []string) {
	for _, name := range h.logins {
		all = append(all, "ALTER ROLE "+ident(name)+" "+what)
	}
	return all
}
