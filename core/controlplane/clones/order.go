package clones

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Order stores a clone of what a database holds, and queues its making, on the order of the people who run the service; on, where
// it is not empty, is the server that gets the clone, and no other does. Without, it is on its source's server if there is room.
// Gates of the limited rollout do not count.
//
// VALIDATION_ERROR: a field of the request is wrong, the name is reserved or taken, or on "reason" or, saying why the server does
// not take it, on "server". DATABASE_NOT_FOUND. ACCOUNT_SUSPENDED. PLAN_LIMIT: no more databases. AGENT_ERROR: no server has room
// for another one. The other errors are those of clone.Scene.
func (c *Clones) Order(
	ctx context.Context, db id.DatabaseID, q clone.Request, on id.ServerID, by operation.Order,
) (s Started, err error) {
	if err := by.Check(); err != nil {
		return s, err
	}
	if q, err = q.Check(); err != nil {
		return s, err
	}
	source, owner, err := c.ofOwner(ctx, db)
	if err != nil {
		return s, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	draft, err := provision.New(c.base, owner, q.Draft(source))
	if err != nil {
		return s, err
	}
	var login ports.LoginSecret
	err = c.base.UpdateReached(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		o := c.base.Work.Queued(locked, Kind, nil, work.Origin{Actor: audit.Operator})
		err := c.begin(ctx, tx, locked, q, o, draft, provision.Making{On: on, Ordered: by.Ordered()})
		if err != nil {
			return err
		}
		s, login, err = started(ctx, tx, database.Viewer{AccountID: owner.ID, Scope: account.FullAccount}, o.ID)
		return err
	})
	if err != nil {
		return Started{}, err
	}
	c.base.Work.Reserved(Kind)
	s.Clone, err = provision.Reveal(c.base, s.Clone.Record, login)
	return s, err
}

// ofOwner reads a database and the account that it belongs to.
func (c *Clones) ofOwner(ctx context.Context, db id.DatabaseID) (r database.Record, owner account.Account, err error) {
	err = c.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if r, err = tx.Databases().Get(ctx, db); err != nil {
			return err
		}
		owner, err = tx.Accounts().Get(ctx, r.AccountID)
		return err
	})
	return r, owner, err
}
