// Package rebuilds makes the databases of a server that is gone for good anew on other servers.
package rebuilds

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rebuild"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Rebuilds makes databases anew.
type Rebuilds struct {
	base  *base.Base
	roles Roles
}

// Roles are the additional roles of a database as a server is to make them.
type Roles func(ctx context.Context, p *base.Base, db id.DatabaseID) ([]provision.Role, error)

// New makes the use cases, and registers their kind.
func New(p *base.Base, roles Roles) *Rebuilds {
	r := &Rebuilds{base: p, roles: roles}
	r.register()
	return r
}

// Left is what a server that is gone has left, as the agent of another one sees it.
type Left struct {
	From, On server.Server
	command.Heritage
	// Has are the databases that stand on the other server, as where one has left it while it was away.
	Has map[id.DatabaseID]bool
}

// Standing completes what was found by the databases that stand on the other server. AGENT_ERROR: its agent does not answer.
func (r *Rebuilds) Standing(ctx context.Context, left Left) (Left, error) {
	agent, err := r.base.AgentOf(ctx, left.On.ID)
	if err != nil {
		return left, err
	}
	all, err := base.Inventory(ctx, agent)
	if err != nil {
		return left, fault.Wrap(err, fault.AgentError, "the agent of %s does not say what it has: %s", left.On.Name, err)
	}
	left.Has = map[id.DatabaseID]bool{}
	for _, d := range all {
		left.Has[d.DatabaseID] = d.Made
	}
	return left, nil
}

// Look tells the agent of a server what another one that is gone has left, and returns what it finds there. storage says where;
// empty: where the agent of that server has said. VALIDATION_ERROR on "storage" or "on". AGENT_ERROR: the agent does not answer.
func (r *Rebuilds) Look(ctx context.Context, from, on server.Server, storage string) (Left, error) {
	left := Left{From: from, On: on}
	if from.ID == on.ID {
		return left, fault.Invalid("on", "is the server that is gone: register the machine that takes its place as another server")
	}
	if storage == "" {
		storage = from.Storage
	}
	switch {
	case from.Installation == "":
		return left, fault.Invalid("server",
			"has never said which it is, so that what it has left cannot be told from what others have")
	case storage == "":
		return left, fault.Invalid("storage", "is not known: say what the keys of its objects begin with, or its folder")
	}
	key, err := r.base.Secrets.Open(from.SealedArchiveKey, from.ArchiveContext())
	if err != nil {
		return left, err
	}
	agent, err := r.base.AgentOf(ctx, on.ID)
	if err != nil {
		return left, err
	}
	left.Heritage, err = ports.Ask(ctx, agent, command.Inherit{
		Installation: from.Installation, Storage: storage, Key: string(key),
	})
	var refused *command.Refusal
	switch {
	case command.RefusedFor(err, command.ReasonInvalid) && errors.As(err, &refused):
		return left, fault.Invalid("storage", "%s", refused.Message)
	case err != nil:
		return left, fault.Wrap(err, fault.AgentError, "the agent of %s cannot look at what %s has left: %s", on.Name, from.Name, err)
	case left.Until == nil && left.WhyNoBackups != "":
		return left, fault.Invalid("storage", "has nothing that can be used: %s; %s", left.Why, left.WhyNoBackups)
	}
	return left, nil
}

// Order queues that a database is made anew. The other errors are those of rebuild.Admits. VALIDATION_ERROR: "on" has no room for
// it, another version of PostgreSQL, a database of its name, or this one, of before. ErrElsewhere: it is not on the server that
// is gone any more.
func (r *Rebuilds) Order(
	ctx context.Context, left Left, db id.DatabaseID, by operation.Order,
) (o operation.Operation, err error) {
	now := r.base.Clock.Now()
	err = r.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		locked, err := tx.Databases().Lock(ctx, db)
		if err != nil {
			return err
		}
		if locked.ServerID != left.From.ID {
			return ErrElsewhere
		}
		if left.Has[db] {
			return fault.Invalid("on", "%s has this database, as it was when it left: name another server, or take what that has, by "+
				"database adopt --server %s --database %s --server-gone", left.On.Name, left.On.Name, db)
		}
		if err := r.admits(ctx, tx, locked); err != nil {
			return err
		}
		room, err := tx.Servers().Room(ctx, left.On.ID, "")
		if err != nil {
			return err
		}
		if why := room.Refuses(locked.ReservedConnections(), locked.PostgresVersion); why != "" {
			return fault.Invalid("on", "%s", why)
		}
		if err := tx.Servers().Move(ctx, db, left.On.ID); err != nil {
			return err
		}
		taken, err := tx.Backups().Names(ctx, db)
		if err != nil {
			return err
		}
		input := rebuild.Input{
			From: left.From.ID, Lost: left.From.Installation, SeenAt: seenAt(left.From, now), Archive: left.Until != nil,
			SizeBytes: locked.SizeBytes, Filename: backup.FreeFilename(now, taken),
		}
		locked.ServerID = left.On.ID
		o = r.base.Work.Queued(locked, Kind, operation.Encode(input), work.Origin{Actor: audit.Operator})
		o.OtherID = left.From.ID // to which the record goes back if it fails
		if err := tx.Operations().Add(ctx, o); err != nil {
			return err
		}
		return r.base.Audit(ctx, tx, locked, audit.Operator, audit.RebuildRequested, audit.Details{
			"operationId": string(o.ID), "operator": by.By, "reason": by.Reason, "from": left.From.Name, "on": left.On.Name,
		})
	})
	if err == nil {
		r.base.Work.Reserved(Kind)
	}
	return o, err
}

// ErrElsewhere says of a database that it is on another server.
var ErrElsewhere = errors.New("the database is not on the server that is gone")

func (r *Rebuilds) admits(ctx context.Context, tx ports.Tx, locked database.Record) error {
	open, err := tx.Operations().Open(ctx, locked.ID)
	if err = base.NotFound(err, nil); err != nil {
		return err
	}
	change, err := tx.RoleChanges().Pending(ctx, locked.ID)
	if err = base.NotFound(err, nil); err != nil {
		return err
	}
	return rebuild.Admits(locked.Status, open.ID, change.ID)
}

// seenAt is when a server was last known to answer.
func seenAt(s server.Server, now time.Time) time.Time {
	switch {
	case s.AwaySince != nil:
		return *s.AwaySince
	case s.AnsweredAt != nil:
		return *s.AnsweredAt
	}
	return now
}
