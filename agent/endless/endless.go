// Package endless ends what customers have PostgreSQL do without end in what a server shares: tasks of autovacuum, whose few
// workers serve all databases, and exported snapshots, whose files count against nobody's quota.
package endless

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
)

// pause is between two looks, and lookTime bounds one.
const (
	pause    = time.Second
	lookTime = 5 * time.Second
)

// Watch looks for both.
type Watch struct {
	db     *sql.DB // the maintenance database
	open   func(database string) (*sql.DB, error)
	log    *zap.Logger
	seldom loop.Seldom // for what a customer can bring about again and again

	workers keeper
	counted struct{ tasks, exporters atomic.Int64 }
}

// New makes a watch that asks in the maintenance database, and opens others.
func New(maintenance *sql.DB, open func(database string) (*sql.DB, error), b Bounds, log *zap.Logger) *Watch {
	return &Watch{db: maintenance, open: open, log: log, workers: newKeeper(b)}
}

// Counts are of what was ended since the watch was made.
type Counts struct {
	Tasks     int64 // of autovacuum
	Exporters int64 // sessions that exported snapshots
}

// Ended returns the counts.
func (w *Watch) Ended() Counts { return Counts{w.counted.tasks.Load(), w.counted.exporters.Load()} }

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	loop.Run(ctx, w.log, nil, "nobody looks for what has no end", func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		return pause, errors.Join(w.endExporters(ctx), w.endTasks(ctx))
	})
}
