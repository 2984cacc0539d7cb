package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/id"
)

const (
	rotationsInARow = 50
	quietRotations  = 10
)

// measureBystanders rotates the password of one role, over and over, while clients of all the other logins of its database are
// open. Each holds a server connection with something on it that ends with that: a temporary table or a transaction.
func measureBystanders(ctx context.Context, b *bench) (_ []row, err error) {
	db, err := b.client.create(ctx, "bystanders")
	if err != nil {
		return nil, err
	}
	rotated, err := b.client.createRole(ctx, db.ID, "rotated")
	if err != nil {
		return nil, err
	}
	quiet, err := b.rotateOften(ctx, quietRotations, db.ID, rotated.RoleID)
	if err != nil {
		return nil, err
	}
	all, err := b.bystanders(ctx, db)
	defer func() {
		for _, y := range all {
			err = errors.Join(err, y.leave())
		}
	}()
	if err != nil {
		return nil, err
	}
	took, err := b.rotateOften(ctx, rotationsInARow, db.ID, rotated.RoleID)
	if err != nil {
		return nil, err
	}
	disturbed := 0
	for _, y := range all {
		if now, err := y.look(ctx); err != nil || now != y.was {
			disturbed++
		}
	}
	ours, alone := median(took), median(quiet)
	return []row{
		{
			measure: fmt.Sprintf("open pooled clients of other logins that %d rotations in a row have disturbed", rotationsInARow),
			ours:    fmt.Sprintf("%d of %d", disturbed, len(all)), limit: "0", met: disturbed == 0,
		},
		atMost("  one of those rotations against one while nobody is connected (medians)", span(ours), span(alone),
			ours.Seconds()/alone.Seconds(), mostForRoles),
	}, nil
}

func (b *bench) rotateOften(ctx context.Context, times int, of id.DatabaseID, role id.RoleID) (took []time.Duration, err error) {
	for range times {
		began := time.Now()
		if err := b.client.rotateRole(ctx, of, role); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// bystander is a client that nothing may happen to.
type bystander struct {
	db   *sql.DB
	conn *sql.Conn
	mark string // the query that shows what it holds
	was  sight
}

// sight is what a client sees of its own server connection. Own is the number of a row in its temporary table, or its open
// transaction.
type sight struct{ backend, own int64 }

const (
	ownTable       = "SELECT pg_backend_pid(), n FROM mine"
	ownTransaction = "SELECT pg_backend_pid(), txid_current()"
)

// bystanders are a hundred clients of four logins, at both entries of the database.
func (b *bench) bystanders(ctx context.Context, db wire.CreatedDatabase) (all []*bystander, err error) {
	runtime, err := b.client.revealLogin(ctx, db.ID, "runtime")
	if err != nil {
		return nil, err
	}
	readonly, err := b.client.revealLogin(ctx, db.ID, "readonly")
	if err != nil {
		return nil, err
	}
	made, err := b.client.createRole(ctx, db.ID, "bystander")
	if err != nil {
		return nil, err
	}
	another, err := b.client.revealRole(ctx, db.ID, made.RoleID)
	if err != nil {
		return nil, err
	}
	owner := customer{Database: db.Name, Username: db.Name, Password: db.Password}
	for _, group := range []struct {
		customer
		entry string
		mark  string
		count int
	}{
		{owner, db.Name, ownTable, 40},
		{runtime, db.Name, ownTransaction, 20},
		{readonly, db.Name + pooler.TransactionSuffix, ownTransaction, 20},
		{another, db.Name, ownTransaction, 20},
	} {
		for n := range group.count {
			y, err := b.standBy(ctx, group.customer, group.entry, group.mark, n)
			if err != nil {
				return all, fmt.Errorf("client %d of %s: %w", n, group.Username, err)
			}
			all = append(all, y)
		}
	}
	return all, nil
}

// standBy connects as customers do, with TLS.
func (b *bench) standBy(ctx context.Context, who customer, entry, mark string, n int) (y *bystander, err error) {
	y = &bystander{mark: mark}
	if y.db, err = sql.Open("postgres", b.stack.PoolerURL(entry, who.Username, who.Password)); err != nil {
		return nil, err
	}
	if y.conn, err = y.db.Conn(ctx); err == nil {
		err = y.begin(ctx, n)
	}
	if err != nil {
		return nil, errors.Join(err, y.leave())
	}
	return y, nil
}

func (y *bystander) begin(ctx context.Context, n int) (err error) {
	begin := "BEGIN"
	if y.mark == ownTable {
		begin = fmt.Sprintf("CREATE TEMPORARY TABLE mine AS SELECT %d AS n", n)
	}
	if _, err = y.conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	y.was, err = y.look(ctx)
	return err
}

func (y *bystander) look(ctx context.Context) (s sight, err error) {
	return s, y.conn.QueryRowContext(ctx, y.mark).Scan(&s.backend, &s.own)
}

// leave ends the client, and what it holds with it.
func (y *bystander) leave() error {
	if y.conn != nil {
		if err := y.conn.Close(); err != nil {
			return err
		}
	}
	return y.db.Close()
}
