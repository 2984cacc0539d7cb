package base

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

const (
	// RoundEvery is how often most tasks look for work.
	RoundEvery = 2 * time.Second
	// RoundBatch bounds a round of what needs no server.
	RoundBatch = 100
	// RoundMost bounds how much work for all servers together a round reads. It is far more than a dead server usually has
	// waiting, so that the others' work is seen too.
	RoundMost = 100 * RoundBatch
)

// Due lists the databases that have work of a kind waiting by then.
func (p *Base) Due(ctx context.Context, what ports.DueWork, now time.Time, limit int) ([]database.Record, error) {
	return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Databases().Due(ctx, what, now, limit)
	})
}

// OfRecord is the server that work on a database asks, and its account.
func OfRecord(r database.Record) (id.ServerID, id.AccountID) { return r.ServerID, r.AccountID }

// ErrSettled means that another process has done the work.
var ErrSettled = errors.New("already done")

// IsSettled reports whether an error means that nothing is left to do: another process did it, or the database's state forbids
// it now.
func IsSettled(err error) bool {
	return errors.Is(err, ErrSettled) || errors.Is(err, ports.ErrNoRow) || fault.Has(err, fault.DatabaseStateConflict)
}

// UnlessSettled logs the error of a piece of periodic work that is left to do, and returns it.
func (p *Base) UnlessSettled(ctx context.Context, what string, db id.DatabaseID, err error) error {
	if err == nil || IsSettled(err) {
		return nil
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) { // the host is not stopping
		p.Log(ctx, what, db, err)
	}
	return err
}
