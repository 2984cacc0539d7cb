package citoken

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// KeyLife is how long an exchanged key works.
const KeyLife = time.Hour

// MaxLive is how many exchanged keys of a namespace may work at a time. The pipelines of the namespace alone can make them; each
// ends by time.
const MaxLive = 500

// KeptFor is how long an exchanged key stays in lists after its end.
const KeptFor = 24 * time.Hour

// Live are the exchanged keys of a namespace that work.
type Live struct {
	Number   int        `db:"number"`
	FirstEnd *time.Time `db:"first_end"` // nil where there is none
}

// Admit returns RATE_LIMITED where the namespace has no room for one more key.
func (l Live) Admit(now time.Time) error {
	if l.Number < MaxLive || l.FirstEnd == nil {
		return nil
	}
	err := fault.New(fault.RateLimited, "%d keys of this namespace that were made of tokens still work", l.Number)
	err.RetryAfter = max(time.Second, l.FirstEnd.Sub(now))
	return err
}
