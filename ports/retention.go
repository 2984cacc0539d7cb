package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/retention"
)

// Retention deletes what has been over for long enough. Any number of processes may do so concurrently.
type Retention interface {
	// Forget looks at up to limit entries of a kind that were over before a time, the oldest first, beginning after a position, or
	// at the beginning where that is nil. It deletes those that nothing needs, see package retention.
	Forget(ctx context.Context, k retention.Kind, before time.Time, after *Position, limit int) (Forgotten, error)
	// Clock returns what the clock of the metadata's server shows. A host compares its own with that; nothing else goes by it.
	Clock(ctx context.Context) (time.Time, error)
	// Stored returns how much of each kind is stored.
	Stored(ctx context.Context) ([]StoredKind, error)
}

// Forgotten is what one Retention.Forget has done.
type Forgotten struct {
	Looked, Gone int
	Last         *Position // of the entries that it looked at; nil where there was none
}

// StoredKind is how much of a kind is stored.
type StoredKind struct {
	Kind   retention.Kind `db:"kind"`
	Rows   int64          `db:"rows"`   // as PostgreSQL last estimated
	Bytes  int64          `db:"bytes"`  // with indexes
	Oldest *time.Time     `db:"oldest"` // when the entry was over that has been for longest; nil where none is
}
