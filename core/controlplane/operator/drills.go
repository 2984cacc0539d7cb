package operator

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Drills lists drills, newest first: all, or those of a server. VALIDATION_ERROR on "server".
func (o *Operator) Drills(ctx context.Context, of id.ServerID, p ports.Page) ([]drill.Drill, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]drill.Drill, error) {
		if of != "" {
			if _, err := tx.Servers().Get(ctx, of); err != nil {
				return nil, notFound(err, "server")
			}
		}
		return tx.Drills().List(ctx, of, p)
	})
}

// DrillOrder is a drill that an operator wants at once.
type DrillOrder struct {
	// ServerID may be empty where a database is given.
	ServerID id.ServerID
	// DatabaseID and At are what it is of; empty: whatever chance says.
	DatabaseID id.DatabaseID
	At         *time.Time
}

// OrderDrill has the next drill of a server begin at once, in place of the one that would be next. VALIDATION_ERROR on "server",
// on "database" where that is not on the server, or where a moment is given without one. DATABASE_STATE_CONFLICT: a drill of the
// server goes on.
func (o *Operator) OrderDrill(ctx context.Context, w DrillOrder) error {
	if w.At != nil && w.DatabaseID == "" {
		return fault.Invalid("database", "must be given with a moment")
	}
	return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		details := audit.Details{}
		if w.DatabaseID != "" {
			r, err := tx.Databases().Get(ctx, w.DatabaseID)
			if err != nil {
				return notFound(err, "database")
			}
			if w.ServerID != "" && r.ServerID != w.ServerID {
				return fault.Invalid("database", "is on another server")
			}
			w.ServerID, details["databaseId"] = r.ServerID, string(w.DatabaseID)
		}
		p, err := tx.Drills().LockPlan(ctx, w.ServerID)
		if err != nil {
			return notFound(err, "server")
		}
		switch _, err := tx.Drills().Open(ctx, w.ServerID); {
		case err == nil:
			return fault.New(fault.DatabaseStateConflict, "a drill of the server goes on")
		case !errors.Is(err, ports.ErrNoRow):
			return err
		}
		details["serverId"] = string(w.ServerID)
		if w.At != nil {
			details["pointInTime"] = w.At.UTC().Format(time.RFC3339Nano)
		}
		if err := tx.Drills().SavePlan(ctx, p.Ordered(o.base.Clock.Now(), w.DatabaseID, w.At)); err != nil {
			return err
		}
		return o.record(ctx, tx, "", audit.DrillOrdered, details)
	})
}
