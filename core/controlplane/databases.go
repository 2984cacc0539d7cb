package controlplane

import (
	"context"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Databases lists, creates, labels, starts and stops databases (spec, section "Databases").
type Databases struct {
	*base

	mu    sync.Mutex
	asked map[id.DatabaseID]time.Time // when this process last asked for a size

	told toldAccounts
}

// List returns the databases that the key can see, oldest first, and the position of the last one if there are more.
func (d *Databases) List(ctx context.Context, c Caller, p ports.Page) (list []database.Record, next *ports.Position, err error) {
	err = d.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Databases().Visible(ctx, c.viewer(), onePastEnd(p))
		return err
	})
	list, next = cut(list, p, func(r database.Record) ports.Position {
		return ports.Position{At: r.CreatedAt, ID: string(r.ID)}
	})
	return list, next, err
}

// Get returns a database as it was reached. A size older than database.SizeMaxAge is read from the server, within
// Config.SizeWait; if that fails, or no call is free at once, the stored size is returned.
func (d *Databases) Get(ctx context.Context, r Reached) (database.Record, error) {
	if err := r.Permit(account.See); err != nil {
		return database.Record{}, err
	}
	now := d.Clock.Now()
	if !r.record.SizeIsStale(now) || !hasServerSide(r.record.Status) || !d.mayAsk(r.record.ID, now) {
		return r.record, nil
	}
	release, free := d.calls.enterNow(r.caller.Account.ID, r.record.ServerID)
	if !free {
		return r.record, nil
	}
	defer release()
	size, err := d.readSize(ctx, r.record)
	if err != nil {
		d.journal(ctx, "size.unknown", r.record.ID, err)
		return r.record, nil
	}
	r.record.SizeBytes, r.record.SizedAt = size, &now
	err = d.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Databases().Lock(ctx, r.record.ID)
		if err != nil {
			return err
		}
		stored.SizeBytes, stored.SizedAt = size, &now
		return tx.Databases().Save(ctx, stored)
	})
	return r.record, notFound(err, errDatabaseNotFound())
}

func hasServerSide(s database.Status) bool { return s == database.Active || s == database.Stopped }

// sizeRetry is how long a failed read of a size is not repeated, so that an agent that is down does not slow every request.
const sizeRetry = 10 * time.Second

func (d *Databases) mayAsk(db id.DatabaseID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.asked[db]) < sizeRetry {
		return false
	}
	if d.asked == nil {
		d.asked = map[id.DatabaseID]time.Time{}
	}
	d.asked[db] = now
	return true
}

func (d *Databases) readSize(ctx context.Context, r database.Record) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, d.SizeWait)
	defer cancel()
	agent, err := d.agentOf(ctx, r.ServerID)
	if err != nil {
		return 0, err
	}
	size, err := ports.Ask(ctx, agent, command.DatabaseSize{DatabaseID: r.ID})
	return size.Bytes, err
}

// SetEnvironment stores the label; empty removes it. The change is recorded in the activity log. DATABASE_STATE_CONFLICT while
// the database is being created or deleted.
func (d *Databases) SetEnvironment(ctx context.Context, r Reached, e database.Environment) error {
	if err := r.Permit(account.Configure); err != nil {
		return err
	}
	err := d.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, r.record.ID)
		if err != nil {
			return err
		}
		if _, err := record.Status.Decide(database.Configure); err != nil {
			return err
		}
		if record.Environment == e {
			return nil
		}
		details := audit.Details{"from": string(record.Environment), "to": string(e)}
		record.Environment = e
		if err := tx.Databases().Save(ctx, record); err != nil {
			return err
		}
		return d.audit(ctx, tx, record, r.caller.Actor(), audit.EnvironmentChanged, details)
	})
	return notFound(err, errDatabaseNotFound())
}
