package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// How many databases go one after the other, and how soon after each other. The service takes a second or more for each preview
// whose lease has ended: then there are more reloads, and no more of them in the same time.
const (
	endingDatabases = 1000
	endsEvery       = 20 * time.Millisecond
	quietLooks      = 500
	looksEvery      = 5 * time.Millisecond
)

// measureEnds has many of 5,000 databases go, as previews do whose leases end, and looks how long PgBouncer, which is one thread,
// has a client wait meanwhile.
func measureEnds(ctx context.Context, b *bench) (rows []row, err error) {
	settings, owner, err := b.poolerSettings()
	if err != nil {
		return nil, err
	}
	p := pooler.New(settings, owner)
	defer p.Close()
	all := manyEntries(settings)
	err = b.withPooler(ctx, p, all, func(*cluster.Pooler) error {
		if err := p.Apply(ctx, all); err != nil {
			return err
		}
		var quiet []time.Duration
		for range quietLooks {
			took, err := look(ctx, p)
			if err != nil {
				return err
			}
			quiet = append(quiet, took)
		}
		reloads, beside, err := endThem(ctx, p, all)
		if err != nil {
			return err
		}
		rows = []row{
			told(fmt.Sprintf("reloads of PgBouncer for %d databases that go, one each %s", endingDatabases, endsEvery), number(reloads),
				number(endingDatabases)),
			told("a client's wait for PgBouncer beside that, against nothing beside (p99)", span(percentile(beside, 99)),
				span(percentile(quiet, 99))),
			told("  the longest", span(slices.Max(beside)), span(slices.Max(quiet))),
		}
		return nil
	})
	return rows, err
}

// look is how long PgBouncer takes for an answer.
func look(ctx context.Context, p *pooler.Pooler) (time.Duration, error) {
	time.Sleep(looksEvery)
	began := time.Now()
	err := p.Ping(ctx)
	return time.Since(began), err
}

func percentile(all []time.Duration, n int) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)*n/100]
}

// endThem has the first of the databases go, and returns when PgBouncer has heard of the last one.
func endThem(ctx context.Context, p *pooler.Pooler, all pooler.State) (reloads int, waits []time.Duration, err error) {
	var mu sync.Mutex
	gone, heard := 0, 0
	read := func(context.Context) (pooler.State, error) {
		mu.Lock()
		defer mu.Unlock()
		reloads, heard = reloads+1, gone
		return pooler.State{Settings: all.Settings, Entries: all.Entries[gone:]}, nil
	}
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return heard == endingDatabases
	}
	end := time.NewTicker(endsEvery)
	defer end.Stop()
	for !done() {
		select {
		case <-end.C:
			mu.Lock()
			left := gone < endingDatabases
			if left {
				gone++
			}
			mu.Unlock()
			if left {
				p.SyncSoon(read)
			}
		default:
			took, err := look(ctx, p)
			if err != nil {
				return 0, nil, err
			}
			waits = append(waits, took)
		}
	}
	count := reloads
	return count, waits, p.Sync(ctx, read)
}
