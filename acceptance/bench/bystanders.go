package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/agent/pooler"
)

const (
	rotationsInARow = 50
	ofEachLogin     = 25
)

// measureBystanders rotates the password of one role, over and over, while clients of all the other logins of its database are
// open, each in a transaction, and the password of another by hand.
func measureBystanders(ctx context.Context, b *bench) (_ []row, err error) {
	r, err := newRotations(ctx, b, "bystanders")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.end(ctx)) }()
	all, err := r.bystanders(ctx)
	defer func() {
		for _, y := range all {
			err = errors.Join(err, y.db.Close())
		}
	}()
	if err != nil {
		return nil, err
	}
	t, err := inTurn(rotationsInARow, way{measured: r.ours(ctx)}, way{measured: r.theirs(ctx)})
	if err != nil {
		return nil, err
	}
	disturbed := 0
	for _, y := range all {
		if now, err := y.look(ctx); err != nil || now != y.was {
			disturbed++
		}
	}
	what := fmt.Sprintf("of %d open pooled clients of other logins, %d rotations in a row have disturbed", len(all), rotationsInARow)
	return []row{
		{measure: what, ours: number(disturbed), limit: "0", met: disturbed == 0},
		t.row("  one of those rotations against one by hand", mostForRoles),
	}, nil
}

// bystander is a client that nothing may happen to.
type bystander struct {
	db  *sql.DB // of one connection
	was sight
}

// sight is what a client sees of its own server connection and its open transaction.
type sight struct{ backend, transaction int64 }

func (y *bystander) look(ctx context.Context) (s sight, err error) {
	return s, y.db.QueryRowContext(ctx, "SELECT pg_backend_pid(), txid_current()").Scan(&s.backend, &s.transaction)
}

// bystanders are a hundred clients of four logins, at both entries of the database.
func (r *rotations) bystanders(ctx context.Context) (all []*bystander, err error) {
	c := r.bench.client
	runtime, err := c.revealLogin(ctx, r.db.ID, "runtime")
	if err != nil {
		return nil, err
	}
	readonly, err := c.revealLogin(ctx, r.db.ID, "readonly")
	if err != nil {
		return nil, err
	}
	made, err := c.createRole(ctx, r.db.ID, "bystander", roleLimit)
	if err != nil {
		return nil, err
	}
	another, err := c.revealRole(ctx, r.db.ID, made.RoleID)
	if err != nil {
		return nil, err
	}
	readonly.Database += pooler.TransactionSuffix
	for _, who := range []customer{{r.db.Name, r.db.Name, r.db.Password}, runtime, readonly, another} {
		for n := range ofEachLogin {
			y := &bystander{}
			if y.db, err = sql.Open("postgres", r.bench.stack.PoolerURL(who.Database, who.Username, who.Password)); err != nil {
				return all, err
			}
			all = append(all, y)
			y.db.SetMaxOpenConns(1)
			if _, err = y.db.ExecContext(ctx, "BEGIN"); err == nil {
				y.was, err = y.look(ctx)
			}
			if err != nil {
				return all, fmt.Errorf("client %d of %s: %w", n, who.Username, err)
			}
		}
	}
	return all, nil
}
