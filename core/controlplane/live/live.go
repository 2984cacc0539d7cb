// Package live tells open pages of changes of the databases that they show.
package live

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

const (
	// interval is how often the databases of all open pages are looked at.
	interval = time.Second
	// most is how many databases one statement looks at.
	most = 1000
)

// Live tells the open pages of this process of changes: one look at a database serves all pages that show it.
type Live struct {
	base *base.Base

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// watcher is one open page. Only the looks that begin after it was added compare it, one after the other.
type watcher struct {
	list    []id.DatabaseID
	seen    []string // the pulse of each as it was last seen; empty where there is no such database
	changed chan struct{}
}

// New makes the use cases. Pages are told of something only while Run looks.
func New(p *base.Base) *Live { return &Live{base: p, watchers: map[*watcher]struct{}{}} }

// Watch has a person's page told of changes of databases: changed receives after something has changed that the pages of one of
// them show, once for all that changed while nobody received. Each change after Watch has returned is told, within about interval
// while the store answers. The page must call stop at its end, and may do so twice; how many pages are open is for the caller to
// bound. The errors are those of StillSees.
func (l *Live) Watch(
	ctx context.Context, c access.Caller, list []id.DatabaseID,
) (changed <-chan struct{}, stop func(), err error) {
	w := &watcher{list: slices.Clone(list), changed: make(chan struct{}, 1)}
	err = l.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := c.StillSees(ctx, tx, l.base.Clock, w.list); err != nil {
			return err
		}
		now, err := pulses(ctx, tx, w.list)
		w.seen = w.of(now)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers[w] = struct{}{}
	return w.changed, func() { l.remove(w) }, nil
}

func (l *Live) remove(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watchers, w)
}

// StillSees checks that a person may go on seeing a page about databases. UNAUTHORIZED: the session has ended, or the caller is
// no person. DATABASE_NOT_FOUND: the person does not see one of them any more. ACCOUNT_SUSPENDED. Any other error says nothing
// about the person.
func (l *Live) StillSees(ctx context.Context, c access.Caller, list []id.DatabaseID) error {
	return l.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		return c.StillSees(ctx, tx, l.base.Clock, list)
	})
}

// Run looks until the context ends, while there are pages. What changes while the store is away is told when it is back. A
// process has one Run.
func (l *Live) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := l.look(ctx); err != nil && ctx.Err() == nil {
				l.base.Journal.Log(ctx, ports.JournalEvent{What: "pages.unreadable", Err: err})
			}
		case <-ctx.Done():
			return
		}
	}
}

func (l *Live) look(ctx context.Context) error {
	l.mu.Lock()
	watchers := slices.Collect(maps.Keys(l.watchers))
	l.mu.Unlock()
	watched := map[id.DatabaseID]struct{}{}
	for _, w := range watchers {
		for _, db := range w.list {
			watched[db] = struct{}{}
		}
	}
	now, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) (map[id.DatabaseID]string, error) {
		return pulses(ctx, tx, slices.Collect(maps.Keys(watched)))
	})
	if err != nil {
		return err
	}
	for _, w := range watchers {
		w.compare(now)
	}
	return nil
}

// compare tells the page where something is not as it was last seen.
func (w *watcher) compare(now map[id.DatabaseID]string) {
	last := w.seen
	if w.seen = w.of(now); slices.Equal(last, w.seen) {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default: // it has not heard of the change before
	}
}

// of are the pulses of the page's databases.
func (w *watcher) of(now map[id.DatabaseID]string) []string {
	list := make([]string, len(w.list))
	for i, db := range w.list {
		list[i] = now[db]
	}
	return list
}

func pulses(ctx context.Context, tx ports.Tx, list []id.DatabaseID) (map[id.DatabaseID]string, error) {
	all := make(map[id.DatabaseID]string, len(list))
	for some := range slices.Chunk(list, most) {
		found, err := tx.Databases().Pulses(ctx, some)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}
