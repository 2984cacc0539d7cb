package clones

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Copy stores a database of another capability, as it describes it, and queues its making as a clone of what the source held at a
// moment, which the caller has found in the source's window. It has its source's role model and version of PostgreSQL. The errors
// are those of Start.
func (c *Clones) Copy(
	ctx context.Context, reached access.Reached, m provision.Making, at time.Time,
) (made provision.Copied, err error) {
	if err := reached.Caller().RequireFullAccount(); err != nil {
		return made, err
	}
	if err := reached.Permit(account.Own, rollout.Clone); err != nil {
		return made, err
	}
	m.Record.RoleModel, m.Record.PostgresVersion = reached.Record().RoleModel, reached.Record().PostgresVersion
	draft, err := provision.New(c.base, reached.Caller().Account, m.Record)
	if err != nil {
		return made, err
	}
	var owner ports.LoginSecret
	err = reached.Update(ctx, c.base, func(ctx context.Context, tx ports.Tx, source database.Record) error {
		known, err := m.Claim(ctx, tx, &draft)
		if err != nil {
			return err
		}
		if made.Fresh = known == ""; made.Fresh {
			o := c.base.Work.Queued(source, Kind, nil, reached.Caller().Origin())
			if err := c.begin(ctx, tx, source, clone.Request{At: &at}, o, draft, m); err != nil {
				return err
			}
			known = draft.Record.ID
		}
		made.Made.Record, made.Operation, owner, err = copied(ctx, tx, reached, known)
		return err
	})
	if err != nil {
		return provision.Copied{}, err
	}
	if made.Fresh {
		c.base.Work.Reserved(Kind)
	}
	made.Made, err = provision.Reveal(c.base, made.Made.Record, owner)
	if err == nil && !made.Fresh {
		made.Made = provision.WithoutStalePassword(ctx, c.base, reached.Caller(), made.Made, owner)
		made.Made, err = provision.ShownAgain(ctx, c.base, reached.Caller(), made.Made)
	}
	return made, err
}

// begin decides over a clone, places and stores it, and queues the operation that makes it. The making says where, on whose
// order, and what else is stored.
func (c *Clones) begin(
	ctx context.Context, tx ports.Tx, source database.Record, q clone.Request, o operation.Operation, draft provision.Draft,
	m provision.Making,
) error {
	input, err := c.admit(ctx, tx, source, q, &draft)
	if err != nil {
		return err
	}
	place, where := draft.PlaceNear, source.ServerID
	switch {
	case m.On != "":
		place, where = draft.PlaceOn, m.On
	case !input.Fresh: // the backup is at the source's server
		place = draft.Place
	}
	if err := place(ctx, tx, where); err != nil {
		return err
	}
	input.DatabaseID, input.Ordered = draft.Record.ID, m.Ordered
	if on := draft.Record.ServerID; on != source.ServerID {
		input.ServerID = on
		if err := c.base.SealPeerToken(&o); err != nil {
			return err
		}
	}
	o.Input = operation.Encode(input)
	return draft.Store(ctx, tx, func() error {
		if m.Also != nil {
			if err := m.Also(ctx, tx, draft.Record); err != nil {
				return err
			}
		}
		return c.add(ctx, tx, source, o, input, draft.Record)
	})
}

// copied reads a copy, and the operation of its source that makes it; empty once that is over. As of started, it is called in the
// transaction that has locked the source.
func copied(ctx context.Context, tx ports.Tx, by access.Reached, db id.DatabaseID) (
	record database.Record, making operation.Operation, owner ports.LoginSecret, err error,
) {
	if record, _, err = access.See(ctx, tx, by.Caller().Viewer(), db); err != nil {
		return record, making, owner, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	if owner, err = tx.Logins().Get(ctx, db, database.OwnerLogin); err != nil {
		return record, making, owner, err
	}
	open, err := tx.Operations().Open(ctx, by.Record().ID)
	if err != nil || open.Kind != Kind {
		return record, making, owner, base.NotFound(err, nil)
	}
	input, err := operation.Decode[clone.Input](open.Input)
	if input.DatabaseID == db {
		making = open
	}
	return record, making, owner, err
}
