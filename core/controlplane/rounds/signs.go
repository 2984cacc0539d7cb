package rounds

import (
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// lately is for how long a server's sign of life is enough for harmless work. An agent that does not understand what it is asked
// meanwhile refuses it by itself.
const lately = 10 * time.Second

// signs are when servers last gave a sign of life, to any part of this process.
type signs struct {
	mu sync.Mutex
	at map[id.ServerID]time.Time
}

// Heard notes that a server has given a sign of life, and that its agent has the protocol of this host; or that it gives none.
func (r *Runner) Heard(from id.ServerID, alive bool) {
	r.signs.mu.Lock()
	defer r.signs.mu.Unlock()
	if !alive {
		delete(r.signs.at, from)
		return
	}
	if r.signs.at == nil {
		r.signs.at = map[id.ServerID]time.Time{}
	}
	r.signs.at[from] = r.clock.Now()
}

// heardLately reports whether a server need not be asked for a sign of life. A clock that was set back ends it.
func (r *Runner) heardLately(from id.ServerID) bool {
	r.signs.mu.Lock()
	defer r.signs.mu.Unlock()
	at, heard := r.signs.at[from]
	ago := r.clock.Now().Sub(at)
	return heard && ago >= 0 && ago < lately
}
