package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// The databases that come and go, and how many at a time.
const (
	goneLogins    = 2000
	goneAtATime   = 100
	loginsOfGone  = 4
	goneDatabases = goneLogins / loginsOfGone
)

// measureGone has databases come and go in a PgBouncer, as previews do: what their logins leave behind when they are gone, in
// memory and in the time of a change. Nobody has logged in. The logins of a preview have no limits, additional roles have.
func measureGone(ctx context.Context, b *bench) (rows []row, err error) {
	settings, owner, err := b.poolerSettings()
	if err != nil {
		return nil, err
	}
	p := pooler.New(settings, owner)
	defer p.Close()
	for what, limit := range []int{0, 5} {
		kind := []string{"without limits", "with limits"}[what]
		before, after, err := b.comeAndGo(ctx, p, settings, limit)
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			told(fmt.Sprintf("memory of PgBouncer, %d logins %s gone, against never there", goneLogins, kind), after.memory,
				before.memory),
			told("  of that for one", (after.memory-before.memory)/goneLogins, nil),
			told("  a change of one database, likewise", span(after.change), span(before.change)))
	}
	return rows, nil
}

// comeAndGo has databases come and go whose logins have a limit.
func (b *bench) comeAndGo(
	ctx context.Context, p *pooler.Pooler, settings pooler.Settings, limit int,
) (before, after leftover, err error) {
	none := pooler.State{Settings: settings}
	err = b.withPooler(ctx, p, none, func(running *cluster.Pooler) (err error) {
		if before, err = b.leftBy(ctx, p, running, settings); err != nil {
			return err
		}
		all := manyEntries(settings).Entries[:goneDatabases]
		for first := 0; first < len(all); first += goneAtATime {
			some := pooler.State{Settings: settings}
			for _, e := range all[first : first+goneAtATime] {
				e.Logins = slices.Clone(e.Logins[:loginsOfGone])
				for i := range e.Logins {
					e.Logins[i].MaxConnections = limit
				}
				some.Entries = append(some.Entries, e)
			}
			if err := p.Apply(ctx, some); err != nil {
				return err
			}
		}
		after, err = b.leftBy(ctx, p, running, settings)
		return err
	})
	return before, after, err
}

// leftover is what a PgBouncer with one database needs.
type leftover struct {
	memory amount
	change time.Duration
}

// leftBy changes the one database that there is, over and over.
func (b *bench) leftBy(
	ctx context.Context, p *pooler.Pooler, running *cluster.Pooler, settings pooler.Settings,
) (left leftover, err error) {
	stays := pooler.Entry{Database: "stays", ConnectionCap: 20, Logins: []pooler.Login{{Name: "stays", MaxConnections: 20}}}
	var took []time.Duration
	for range b.runs*changesPerRun + 1 {
		stays.ConnectionCap++
		began := time.Now()
		if err := p.Apply(ctx, pooler.State{Settings: settings, Entries: []pooler.Entry{stays}}); err != nil {
			return left, err
		}
		took = append(took, time.Since(began))
	}
	left.change = median(took[1:])
	left.memory, err = status(running.Pid(), "VmRSS")
	return left, err
}
