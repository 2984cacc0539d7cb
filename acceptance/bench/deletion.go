package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

const (
	leavingBytes = textBytes / 10
	// mostToDelete is times what the same takes by hand, and mostToRecover what a customer waits for.
	mostToDelete  = 2.0
	mostToRecover = span(2 * time.Second)
	leavingPause  = 20 * time.Millisecond
)

// measureDeletion deletes a database through the API, from the request until the operation has succeeded, and recovers it, until
// its owner is in. What counts by hand:
//
//   - delete: a dump into a file and, as the deletion backup is verified, from that into a new database; the sessions ended, and
//     the database renamed and closed.
//   - recover: its name and connections again, and a log-in to PostgreSQL.
func measureDeletion(ctx context.Context, b *bench) (_ []row, err error) {
	if err := b.withBatch(ctx); err != nil {
		return nil, err
	}
	plain, err := b.byHand(ctx)
	if err != nil {
		return nil, err
	}
	h := leavingByHand{plain, "left-by-hand"}
	if err := h.create(ctx, h.name); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.drop(ctx, h.name), h.Close()) }()
	if _, err := fill(ctx, b.stack.Server, h.name, int(b.scale*leavingBytes)); err != nil {
		return nil, err
	}
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
	return []row{
		gone.row(what, mostToDelete),
		below(fmt.Sprintf("  its recovery until the owner is in (median of %d)", len(back.ours)), span(median(back.ours)),
			span(median(back.byHand)), mostToRecover),
	}, nil
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

// leavingByHand does the same with a database like it.
type leavingByHand struct {
	byHand
	name string
}

func (h leavingByHand) leave(ctx context.Context) error {
	const script = `"$PG_DUMP" --no-owner --no-privileges "$1" | sed '1,30{/^SET transaction_timeout/d}' | gzip -6 > "$2"
		gunzip -c "$2" | "$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 "$3"`
	file := h.bench.path("left-by-hand.sql.gz")
	err := h.do(ctx, "CREATE DATABASE checked_by_hand TEMPLATE template0")
	if err == nil {
		err = h.bench.script(ctx, script, h.bench.at(h.name), file, h.bench.at("checked_by_hand"))
	}
	return errors.Join(err, os.Remove(file), h.do(ctx, "DROP DATABASE checked_by_hand",
		"SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = "+pq.QuoteLiteral(h.name),
		"ALTER DATABASE "+ident(h.name)+" RENAME TO left_by_hand", "ALTER DATABASE left_by_hand ALLOW_CONNECTIONS false"))
}

func (h leavingByHand) comeBack(ctx context.Context) error {
	err := h.do(ctx, "ALTER DATABASE left_by_hand ALLOW_CONNECTIONS true", "ALTER DATABASE left_by_hand RENAME TO "+ident(h.name))
	return errors.Join(err, h.logIn(ctx, customer{h.name, h.name, byHandPassword}))
}
