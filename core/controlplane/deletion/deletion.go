// Package deletion deletes databases, recovers them while their tombstones last, and purges them afterwards (spec,
// "Deleted-database record" and the limited-rollout routes).
package deletion

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Deletion is the use cases.
type Deletion struct {
	base     *base.Base
	open     Open
	withdraw Withdraw
	others   []Other
}

// Open streams a backup that a caller may read, as Backups.Open does. BACKUP_NOT_FOUND, AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE,
// RATE_LIMITED, SERVER_BUSY.
type Open func(ctx context.Context, r access.Reached, b backup.Backup, has backup.Beginning) (ports.File, error)

// Withdraw ends the open invitations to a locked database.
type Withdraw func(ctx context.Context, tx ports.Tx, by audit.Actor, locked database.Record) error

// New makes the use cases, and registers their kinds and their periodic task.
func New(p *base.Base, o Open, w Withdraw) *Deletion {
	d := &Deletion{base: p, open: o, withdraw: w}
	d.registerDelete()
	d.registerRecover()
	d.registerPurge()
	return d
}

// Outcome is what has become of a database.
type Outcome string

// The outcomes, and what they are outcomes of.
const (
	Deleting     Outcome = "deleting"      // its deletion is queued
	Deleted      Outcome = "deleted"       // a tombstone is left
	Kept         Outcome = "kept"          // its deletion has failed or was canceled: it is as it was
	Recovering   Outcome = "recovering"    // its recovery is queued
	Recovered    Outcome = "recovered"     // it is as it was before its deletion
	NotRecovered Outcome = "not recovered" // its recovery has failed or was canceled: it is deleted as before
	Purged       Outcome = "purged"        // nothing is left; its record goes with the transaction
)

// Other is another capability with databases of its own kind. Each function gets any database, in a transaction that has locked
// it, and may be nil.
type Other struct {
	// Admits refuses what the routes of databases must not do with one of its databases; on is database.Delete or database.Recover.
	// Begin does not ask.
	Admits func(ctx context.Context, tx ports.Tx, locked database.Record, on database.Event) error
	// Gate is the gate before the recovery of one of its databases; empty for every other. Nothing is locked.
	Gate func(ctx context.Context, tx ports.Tx, r database.Record) (rollout.Gate, error)
	// Followed notes, in the transaction that makes it so, what becomes of a database. The record is as it is saved there.
	Followed func(ctx context.Context, tx ports.Tx, locked database.Record, o Outcome) error
}

// Register adds another capability. It is called before anything runs.
func (d *Deletion) Register(o Other) { d.others = append(d.others, o) }

func (d *Deletion) admits(ctx context.Context, tx ports.Tx, locked database.Record, on database.Event) error {
	for _, o := range d.others {
		if o.Admits == nil {
			continue
		}
		if err := o.Admits(ctx, tx, locked, on); err != nil {
			return err
		}
	}
	return nil
}

func (d *Deletion) followed(ctx context.Context, tx ports.Tx, locked database.Record, what Outcome) error {
	for _, o := range d.others {
		if o.Followed == nil {
			continue
		}
		if err := o.Followed(ctx, tx, locked, what); err != nil {
			return err
		}
	}
	return nil
}

// recoveryGate is the gate before the recovery of a database.
func (d *Deletion) recoveryGate(ctx context.Context, tx ports.Tx, r database.Record) (rollout.Gate, error) {
	for _, o := range d.others {
		if o.Gate == nil {
			continue
		}
		if g, err := o.Gate(ctx, tx, r); err != nil || g != "" {
			return g, err
		}
	}
	return rollout.Recover, nil
}

// save changes a database that is locked, and tells the others.
func (d *Deletion) save(
	ctx context.Context, tx ports.Tx, locked database.Record, what Outcome, change func(*database.Record) error,
) error {
	err := change(&locked)
	if err == nil {
		err = tx.Databases().Save(ctx, locked)
	}
	if err != nil {
		return err
	}
	return d.followed(ctx, tx, locked, what)
}
