package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"
)

// byHand is what somebody writes in an afternoon who has PostgreSQL but not pgherd: plain statements of a superuser, one after
// the other, over a connection that is open already, and log-ins straight at PostgreSQL. Nothing is recorded, nothing can be
// resumed, and no pooler is told.
type byHand struct {
	*sql.DB
	bench *bench
}

func (b *bench) byHand(ctx context.Context) (byHand, error) {
	db, err := sql.Open("postgres", b.stack.Server.URL("postgres"))
	if err != nil {
		return byHand{}, err
	}
	db.SetMaxOpenConns(1)
	return byHand{db, b}, db.PingContext(ctx)
}

func (h byHand) do(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := h.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

const byHandPassword = "a password of somebody"

// create makes a database with a login, which gets in.
func (h byHand) create(ctx context.Context, name string) error {
	err := h.do(ctx, "CREATE ROLE "+ident(name)+" LOGIN PASSWORD "+pq.QuoteLiteral(byHandPassword),
		"CREATE DATABASE "+ident(name)+" OWNER "+ident(name), "REVOKE ALL ON DATABASE "+ident(name)+" FROM PUBLIC")
	return errors.Join(err, h.logIn(ctx, customer{name, name, byHandPassword}))
}

func (h byHand) drop(ctx context.Context, name string) error {
	return h.do(ctx, "DROP DATABASE "+ident(name)+" WITH (FORCE)", "DROP ROLE "+ident(name))
}

// createRole makes a login that may read, as far as one database is concerned.
func (h byHand) createRole(ctx context.Context, database, role string) error {
	return errors.Join(h.do(ctx,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD %s CONNECTION LIMIT %d", ident(role), pq.QuoteLiteral(byHandPassword), roleLimit),
		"GRANT pg_read_all_data TO "+ident(role), "GRANT CONNECT ON DATABASE "+ident(database)+" TO "+ident(role),
	), h.logIn(ctx, customer{database, role, byHandPassword}))
}

func (h byHand) dropRole(ctx context.Context, database, role string) error {
	return h.do(ctx, "REVOKE CONNECT ON DATABASE "+ident(database)+" FROM "+ident(role), "DROP ROLE "+ident(role))
}

// rotate changes a password and ends the sessions of before. The new one gets in, the old one does not.
func (h byHand) rotate(ctx context.Context, who customer, password string) error {
	err := h.do(ctx, "ALTER ROLE "+ident(who.Username)+" PASSWORD "+pq.QuoteLiteral(password),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "+pq.QuoteLiteral(who.Username))
	var refusal *pq.Error
	if old := h.logIn(ctx, who); err == nil && !errors.As(old, &refusal) {
		err = fmt.Errorf("the old password of %s is not refused: %w", who.Username, old)
	}
	return errors.Join(err, h.logIn(ctx, customer{who.Database, who.Username, password}))
}

func (h byHand) logIn(ctx context.Context, who customer) error {
	return getsIn(ctx, h.bench.stack.Server.URLFor(who.Username, who.Password, who.Database))
}

func getsIn(ctx context.Context, url string) error {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

func ident(name string) string { return pq.QuoteIdentifier(name) }
