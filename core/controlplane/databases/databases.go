// Package databases makes databases, starts and stops them, and says who may connect.
package databases

import (
	"context"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Databases lists, creates, labels, starts and stops databases (spec, section "Databases").
type Databases struct {
	base *base.Base

	mu    sync.Mutex
	asked map[id.DatabaseID]time.Time // when this process last asked for a size
}

// New makes the use cases, and registers their kinds and periodic tasks.
func New(p *base.Base) *Databases {
	d := &Databases{base: p}
	d.register()
	return d
}

// List returns the databases that the key can see, oldest first, and the position of the last one if there are more.
func (d *Databases) List(
	ctx context.Context, c access.Caller, p ports.Page,
) ([]database.Record, *ports.Position, error) {
	list, next, err := d.find(ctx, c, database.Listing{}, p)
	records := make([]database.Record, len(list))
	for i, r := range list {
		records[i] = r.Record
	}
	return records, next, err
}

// Find returns a page of those of the databases that the caller sees which are in a listing, each with the caller's standing and
// its newest verified backup, and the position of the last one if there are more. VALIDATION_ERROR on what Listing.Checked names,
// or on "cursor" for a position of another order.
func (d *Databases) Find(
	ctx context.Context, c access.Caller, of database.Listing, p ports.Page,
) ([]database.Listed, *ports.Position, error) {
	of, err := of.Checked()
	if err != nil {
		return nil, nil, err
	}
	of.Backups = true
	return d.find(ctx, c, of, p)
}

func (d *Databases) find(
	ctx context.Context, c access.Caller, of database.Listing, p ports.Page,
) ([]database.Listed, *ports.Position, error) {
	return base.List(ctx, d.base.Store, p,
		func(r database.Listed) ports.Position { return ports.PlaceIn(of, r.Record) },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]database.Listed, error) {
			return tx.Databases().Visible(ctx, c.Viewer(), of, p)
		})
}

// Get returns a database as it was reached. A size older than database.SizeMaxAge is read from the server, within
// Config.SizeWait; if that fails, or no call is free at once, the stored size is returned.
func (d *Databases) Get(ctx context.Context, r access.Reached) (database.Record, error) {
	if err := r.Permit(account.See); err != nil {
		return database.Record{}, err
	}
	record, now := r.Record(), d.base.Clock.Now()
	if !sizeIsDue(record.Summary(), now) || !d.mayAsk(record.ID, now) {
		return record, nil
	}
	release, free := d.base.Calls.EnterNow(r.Caller().Account.ID, record.ServerID)
	if !free {
		return record, nil
	}
	defer release()
	size, err := d.readSize(ctx, record)
	if err != nil {
		d.base.Log(ctx, "size.unknown", record.ID, err)
		return record, nil
	}
	record.SizeBytes, record.SizedAt = size, &now
	return record, d.base.UpdateReached(ctx, record.ID, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		if stored.SettingsGeneration != record.SettingsGeneration { // perhaps by a restore: then it is the size of another database
			return nil
		}
		stored.SizeBytes, stored.SizedAt = size, &now
		return tx.Databases().Save(ctx, stored)
	})
}

// Show returns the summary of a database: the one that the caller's admission has read or, where the caller may see the database
// otherwise than by that, or its size is due, that of Get. DATABASE_NOT_FOUND as with access.Reach.
func (d *Databases) Show(
	ctx context.Context, c access.Caller, read database.Summary, db id.DatabaseID,
) (database.Summary, error) {
	if c.Sees(read) && !sizeIsDue(read, d.base.Clock.Now()) {
		return read, nil
	}
	reached, err := access.Find(ctx, d.base.Store, c, nil, base.ErrDatabaseNotFound(),
		func(ctx context.Context, tx ports.Tx, p access.Passage) (access.Reached, error) {
			return p.Reach(ctx, tx, db)
		})
	if err != nil {
		return database.Summary{}, err
	}
	record, err := d.Get(ctx, reached)
	return record.Summary(), err
}

// sizeIsDue reports whether the size of a database is old, and its server knows it.
func sizeIsDue(s database.Summary, now time.Time) bool {
	return s.SizeIsStale(now) && (s.Status == database.Active || s.Status == database.Stopped)
}

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
	ctx, cancel := context.WithTimeout(ctx, d.base.SizeWait)
	defer cancel()
	agent, err := d.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return 0, err
	}
	size, err := ports.Ask(ctx, agent, command.DatabaseSize{DatabaseID: r.ID})
	return size.Bytes, err
}

// SetEnvironment stores the label; nil removes it. The change is recorded in the activity log. VALIDATION_ERROR on "environment".
// DATABASE_STATE_CONFLICT while the database is being created or deleted.
func (d *Databases) SetEnvironment(ctx context.Context, r access.Reached, label *database.Environment) error {
	e, err := database.Chosen(label, "", database.ParseEnvironment)
	if err != nil {
		return err
	}
	if err := r.Permit(account.Configure); err != nil {
		return err
	}
	return r.Update(ctx, d.base, func(ctx context.Context, tx ports.Tx, record database.Record) error {
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
		return d.base.Audit(ctx, tx, record, r.Caller().Actor(), audit.EnvironmentChanged, details)
	})
}
