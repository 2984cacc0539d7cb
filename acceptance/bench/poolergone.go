package main

import (
	"context"
	"fmt"
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
// memory and in the time of a change. Nobody has logged in.
func measureGone(ctx context.Context, b *bench) ([]row, error) {
	settings, owner, err := b.poolerSettings()
	if err != nil {
		return nil, err
	}
	p := pooler.New(settings, owner)
	defer p.Close()
	none := pooler.State{Settings: settings}
	var before, after leftover
	err = b.withPooler(ctx, p, none, func(running *cluster.Pooler) (err error) {
		if before, err = b.leftBy(ctx, p, running, settings); err != nil {
			return err
		}
		all := manyEntries(settings).Entries[:goneDatabases]
		for first := 0; first < len(all); first += goneAtATime {
			some := pooler.State{Settings: settings}
			for _, e := range all[first : first+goneAtATime] {
				e.Logins = e.Logins[:loginsOfGone]
				some.Entries = append(some.Entries, e)
			}
			if err := p.Apply(ctx, some); err != nil {
				return err
			}
		}
		after, err = b.leftBy(ctx, p, running, settings)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []row{
		{
			measure: fmt.Sprintf("memory of PgBouncer, %d logins gone, against never there", goneLogins),
			ours:    amount(after.memory).String(), baseline: amount(before.memory).String(), met: true,
		},
		{
			measure: "  of that for one", ours: kibibytes((after.memory - before.memory) / goneLogins), met: true,
		},
		{
			measure: "a change of one database, likewise", ours: span(after.change).String(), baseline: span(before.change).String(),
			met: true,
		},
	}, nil
}

// leftover is what a PgBouncer with one database needs.
type leftover struct {
	memory int64
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
