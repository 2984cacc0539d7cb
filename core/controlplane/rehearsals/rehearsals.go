// Package rehearsals tries on a copy how databases would do at a server of another PostgreSQL, before they move there.
package rehearsals

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Rehearsals rehearses moves.
type Rehearsals struct {
	base  *base.Base
	roles Roles
}

// Roles are the additional roles of a database as a server is to make them.
type Roles func(ctx context.Context, p *base.Base, db id.DatabaseID) ([]provision.Role, error)

// New makes the use cases, and registers their kind.
func New(p *base.Base, roles Roles) *Rehearsals {
	x := &Rehearsals{base: p, roles: roles}
	x.register()
	return x
}

// Order queues a rehearsal of the move of a database to a server. DATABASE_NOT_FOUND, DATABASE_STATE_CONFLICT: other work is open
// on it, or it is neither active nor stopped. VALIDATION_ERROR on "to": the server cannot take it. AGENT_ERROR: one of the agents
// does not answer.
func (x *Rehearsals) Order(ctx context.Context, db id.DatabaseID, to id.ServerID, by string) (o operation.Operation, err error) {
	r, err := x.base.Record(ctx, db)
	if err != nil || r.Status.Gone() {
		return o, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	is, err := x.movable(ctx, r)
	if err != nil {
		return o, err
	}
	at, err := x.reached(ctx, to)
	if err != nil {
		return o, err
	}
	err = x.base.UpdateStored(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		version, err := x.admits(ctx, tx, locked, at)
		if err != nil {
			return err
		}
		taken, err := tx.Backups().Names(ctx, locked.ID)
		if err != nil {
			return err
		}
		now := x.base.Clock.Now()
		o = x.base.Work.Queued(locked, Kind, operation.Encode(rehearsal.Input{
			From: locked.ServerID, To: at.ID, Version: version, SizeBytes: is.SizeBytes, SchemaSHA256: is.SchemaSHA256, OrderedAt: now,
			Filename: backup.FreeFilename(now, taken),
		}), work.Origin{Actor: audit.Operator})
		o.OtherID = at.ID
		if err := x.base.SealPeerToken(&o); err != nil {
			return err
		}
		if err := tx.Operations().Add(ctx, o); err != nil {
			return err
		}
		return x.base.Audit(ctx, tx, locked, audit.Operator, audit.RehearsalRequested, audit.Details{
			"operationId": string(o.ID), "operator": by, "to": at.Name,
		})
	})
	if err == nil {
		x.base.Work.Reserved(Kind)
	}
	return o, err
}

// movable asks the agent of a database what it is.
func (x *Rehearsals) movable(ctx context.Context, r database.Record) (is command.Movable, err error) {
	agent, err := x.base.AgentOf(ctx, r.ServerID)
	if err == nil {
		is, err = ports.Ask(ctx, agent, command.AskMovable{DatabaseID: r.ID})
	}
	if err != nil {
		err = fault.Wrap(err, fault.AgentError, "the server of the database does not say what it is: %s", base.WhyRefused(err))
	}
	return is, err
}

// reached is a server whose agent answers.
func (x *Rehearsals) reached(ctx context.Context, of id.ServerID) (server.Server, error) {
	s, agent, err := x.base.ServerOf(ctx, of)
	if s.ID == "" {
		return s, base.NotFound(err, fault.Invalid("to", "does not exist"))
	}
	if err == nil {
		_, err = ports.Ask(ctx, agent, command.AskCapabilities{})
	}
	if err != nil {
		err = fault.Wrap(err, fault.AgentError, "the agent of %s does not answer: %s", s.Name, base.WhyRefused(err))
	}
	return s, err
}

// admits decides whether a database is rehearsed at a server, and says which PostgreSQL that has.
func (x *Rehearsals) admits(ctx context.Context, tx ports.Tx, locked database.Record, at server.Server) (version int, err error) {
	if err := move.Admits(locked.Status); err != nil {
		return 0, err
	}
	if locked.ServerID == at.ID {
		return 0, fault.Invalid("to", "is the server that has the database already")
	}
	if err := base.Idle(ctx, tx, locked.ID); err != nil {
		return 0, err
	}
	room, err := tx.Servers().Room(ctx, at.ID, locked.Name)
	switch {
	case err != nil:
		return 0, base.NotFound(err, fault.Invalid("to", "does not exist"))
	case room.Named:
		return 0, fault.Invalid("to", "%s has a database of the name %s", at.Name, locked.Name)
	}
	if why := room.Refuses(locked.ReservedConnections(), room.PostgresVersion); why != "" {
		return 0, fault.Invalid("to", "%s", why)
	}
	return room.PostgresVersion, move.MayBecome(locked, room.PostgresVersion)
}

// Admits decides whether a rehearsal permits the move of a database, which is m by its agent, to a server of another PostgreSQL.
// VALIDATION_ERROR on "to": none does, and which command makes one.
func (x *Rehearsals) Admits(
	ctx context.Context, tx ports.Tx, r database.Record, to server.Server, m command.Movable,
) error {
	var last *rehearsal.Rehearsal
	switch found, err := tx.Rehearsals().Last(ctx, r.ID, to.PostgresVersion); {
	case err == nil:
		last = &found
	case !errors.Is(err, ports.ErrNoRow):
		return err
	}
	why, err := rehearsal.Lacks(last, m.SchemaSHA256, x.base.Clock.Now())
	if err != nil || why == "" {
		return err
	}
	return fault.Invalid("to", "%s has PostgreSQL %d, the database %d: %s; rehearse it: %s",
		to.Name, to.PostgresVersion, r.PostgresVersion, why, Command(r, to))
}

// Command is how an operator rehearses the move of a database to a server.
func Command(r database.Record, to server.Server) string {
	return "pgherd admin database rehearse --database " + r.Name + " --to " + to.Name
}

// Shown is a rehearsal, and what it lacks to permit a move now; empty: nothing.
type Shown struct {
	rehearsal.Rehearsal
	Lacks string
}

// Of are the last rehearsals of a database, which is m by its agent, by the versions that they are for.
func (x *Rehearsals) Of(ctx context.Context, db id.DatabaseID, m command.Movable) (list []Shown, err error) {
	all, err := ports.Read(ctx, x.base.Store, func(ctx context.Context, tx ports.Tx) ([]rehearsal.Rehearsal, error) {
		return tx.Rehearsals().Of(ctx, db)
	})
	for _, r := range all {
		lacks, unread := rehearsal.Lacks(&r, m.SchemaSHA256, x.base.Clock.Now())
		list, err = append(list, Shown{r, lacks}), errors.Join(err, unread)
	}
	return list, err
}
