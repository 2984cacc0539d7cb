package access

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Sees reports whether the caller sees a database that its admission has read: a full-account key needs nothing more than that
// to be decided. False may also mean that it needs to be reached.
func (c Caller) Sees(s database.Summary) bool {
	v := c.Viewer()
	if s.ID == "" || v.IsPerson() || v.Selects() || v.NamespaceID != "" {
		return false
	}
	_, sees := v.StandingOn(database.Record{AccountID: v.AccountID, Status: s.Status}, database.Ties{KeyValid: true})
	return sees
}

// StillSees checks again what a page shows to a person a while after it was served. UNAUTHORIZED: the session has ended, or the
// caller is no person. DATABASE_NOT_FOUND: the person does not see one of the databases. ACCOUNT_SUSPENDED: the own account, or
// that of one of them, is suspended.
func (c Caller) StillSees(ctx context.Context, tx ports.Tx, clock ports.Clock, list []id.DatabaseID) error {
	if !c.IsPerson() {
		return person.ErrNoSession()
	}
	if err := c.sessionHolds(ctx, tx, clock); err != nil {
		return base.NotFound(err, person.ErrNoSession())
	}
	if err := c.StillServed(ctx, tx); err != nil {
		return err
	}
	v, seen := c.Viewer(), map[id.DatabaseID]bool{}
	found, err := tx.Databases().AllTied(ctx, v, list)
	for _, one := range found {
		if _, seen[one.ID] = v.StandingOn(one.Record, one.Ties); seen[one.ID] && err == nil {
			err = v.Served(one.Record, one.Ties)
		}
	}
	for _, db := range list {
		if err == nil && !seen[db] {
			err = ports.ErrNoRow
		}
	}
	return base.NotFound(err, base.ErrDatabaseNotFound())
}

// See reads a database that a viewer sees, and the viewer's standing on it. ErrNoRow does not distinguish missing databases from
// those of others or out of scope. ACCOUNT_SUSPENDED: the viewer sees it, and may do nothing with it.
func See(
	ctx context.Context, tx ports.Tx, v database.Viewer, db id.DatabaseID,
) (database.Record, account.Standing, error) {
	record, ties, err := tx.Databases().Tied(ctx, v, db)
	if err != nil {
		return database.Record{}, "", err
	}
	standing, sees := v.StandingOn(record, ties)
	if !sees {
		return database.Record{}, "", ports.ErrNoRow
	}
	return record, standing, v.Served(record, ties)
}
