package diskroom

import (
	"context"

	"github.com/pgherd/pgherd/agent/pg"
)

// Held is what holds room on the server's disks for one purpose: dump, copy, upload, and ready for copies that have not become a
// database yet.
type Held struct {
	For   string
	Count int
	Bytes int64 // what was promised, or used where that is more; not known of those that are ready
}

// HeldReady is the purpose of copies that are ready.
const HeldReady = "ready"

// HeldFor are the purposes.
var HeldFor = []string{"dump", "copy", "upload", HeldReady}

// Held says what holds room. Each purpose is there, if with nothing.
func (x *Room) Held(ctx context.Context) ([]Held, error) {
	db, err := x.open()
	if err != nil {
		return nil, err
	}
	kept, err := x.kept(ctx, db)
	if err != nil {
		return nil, err
	}
	all := make([]Held, len(HeldFor))
	for i, purpose := range HeldFor {
		all[i].For = purpose
		for _, r := range append(x.reserved(), kept...) {
			if string(r.Purpose) == purpose && !r.Waiting {
				all[i].Count++
				all[i].Bytes += max(r.Bytes, r.Used)
			}
		}
	}
	ready := &all[len(all)-1]
	ready.Count, err = pg.One[int](ctx, db, `SELECT count(*) FROM ledger.copy WHERE ready_at IS NOT NULL`)
	return all, err
}
