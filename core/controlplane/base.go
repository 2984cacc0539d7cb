package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// agentOf returns the agent of a registered server.
func (b *base) agentOf(ctx context.Context, serverID id.ServerID) (ports.Agent, error) {
	_, agent, err := b.serverOf(ctx, serverID)
	return agent, err
}

// serverOf returns a registered server and its agent.
func (b *base) serverOf(ctx context.Context, serverID id.ServerID) (s server.Server, agent ports.Agent, err error) {
	err = b.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		s, err = tx.Servers().Get(ctx, serverID)
		return err
	})
	if err == nil {
		agent, err = b.Fleet.Agent(s)
	}
	return s, agent, err
}

// site is the place of an operation's work: its database, and the agent of its server.
func (b *base) site(ctx context.Context, o operation.Operation) (record database.Record, agent ports.Agent, err error) {
	err = b.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err = ofOperation(ctx, tx, o)
		return err
	})
	if err == nil {
		agent, err = b.agentOf(ctx, record.ServerID)
	}
	return record, agent, err
}

// ofOperation reads an operation's database as its owner sees it. It needs no lock: the lease excludes other work.
func ofOperation(ctx context.Context, tx ports.Tx, o operation.Operation) (database.Record, error) {
	owner := ports.Viewer{AccountID: o.AccountID, Scope: account.FullAccount}
	record, _, err := tx.Databases().Reach(ctx, owner, o.DatabaseID)
	return record, err
}

// audit adds a line to the activity log of a database.
func (b *base) audit(
	ctx context.Context, tx ports.Tx, r database.Record, by audit.Actor, what audit.Action, details audit.Details,
) error {
	return tx.Audit().Add(ctx, audit.Entry{
		ID: newID[id.AuditID](b.Entropy), At: b.Clock.Now(), AccountID: r.AccountID, DatabaseID: r.ID,
		Actor: by, Action: what, Details: details,
	})
}

// journal records something for the operator that is not a step of an operation.
func (b *base) journal(ctx context.Context, what string, db id.DatabaseID, err error) {
	b.Journal.Record(ctx, ports.JournalEvent{What: what, DatabaseID: db, Err: err})
}

func newID[T ~string](e ports.Entropy) T { return id.FromBytes[T](e.UUID()) }

// onePastEnd asks for one entry more than requested, to find out whether there is a next page.
func onePastEnd(p ports.Page) ports.Page {
	if p.Limit > 0 {
		p.Limit++
	}
	return p
}

// cut removes that extra entry again and returns the position of the next page, if there is one.
func cut[T any](list []T, p ports.Page, position func(T) ports.Position) ([]T, *ports.Position) {
	if p.Limit == 0 || len(list) <= p.Limit {
		return list, nil
	}
	list = list[:p.Limit]
	last := position(list[p.Limit-1])
	return list, &last
}
