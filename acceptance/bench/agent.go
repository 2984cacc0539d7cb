package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/ports"
)

// reachAgent reaches the agent as the control plane does.
func (b *bench) reachAgent() (ports.Agent, error) {
	ca, err := os.ReadFile(b.stack.CAFile())
	if err != nil {
		return nil, err
	}
	box := fakebox.New()
	record := server.Server{ID: "33333333-3333-4333-8333-333333333333", AgentURL: b.stack.AgentURL(), CA: string(ca)}
	if record.SealedSecret, err = box.Seal([]byte(b.stack.AgentSecret()), record.SecretContext()); err != nil {
		return nil, err
	}
	return agentclient.New(box, agentclient.Options{}).Agent(record)
}

// sql runs a superuser's statements.
func (b *bench) sql(ctx context.Context, statements ...string) error {
	return b.sqlIn(ctx, "postgres", statements...)
}

func (b *bench) sqlIn(ctx context.Context, database string, statements ...string) error {
	db, err := sql.Open("postgres", b.stack.Server.URL(database))
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, failed := db.ExecContext(ctx, s); failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", s, failed)
		}
	}
	return errors.Join(err, db.Close())
}
