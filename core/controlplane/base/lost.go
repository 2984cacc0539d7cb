package base

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// lostEvery is how often servers are asked what they have: one may have been restored from a backup.
const lostEvery = 10 * time.Minute

// registerLost registers the periodic task that finds what servers have lost.
func (p *Base) registerLost() {
	p.EachServer("lost generations", lostEvery, func(ctx context.Context, _ time.Time, s server.Server) error {
		return p.UnlessSettled(ctx, "generations.not_compared", "", p.findLost(ctx, s))
	})
}

// findLost asks a server for the generations that it has, and records where they are lower than it is known to have had: what is
// stored is then pushed again.
func (p *Base) findLost(ctx context.Context, s server.Server) error {
	agent, err := p.Fleet.Agent(s)
	if err != nil {
		return err
	}
	var failed error
	for after, more := command.AppliedFromStart, true; more; {
		part, err := ports.Ask(ctx, agent, command.AskApplied{After: after})
		if err != nil {
			return err
		}
		failed = errors.Join(failed, p.compare(ctx, s.ID, part.Databases))
		if more = part.More && len(part.Databases) > 0; more {
			after = part.Databases[len(part.Databases)-1].DatabaseID
		}
	}
	return failed
}

func (p *Base) compare(ctx context.Context, of id.ServerID, list []command.AppliedIn) (failed error) {
	for _, u := range p.pushed {
		has := make(map[id.DatabaseID]int64, len(list))
		for _, one := range list {
			has[one.DatabaseID] = one.Generations[u.Kind]
		}
		ahead, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
			return tx.Storage().Ahead(ctx, of, u.Due, has)
		})
		failed = errors.Join(failed, err)
		for _, r := range ahead {
			failed = errors.Join(failed, p.lost(ctx, r.ID, u, *u.Applied(&r), has[r.ID]))
		}
	}
	return failed
}

// lost records a lower generation, unless a push has recorded another one meanwhile. One that was done after the server had
// answered is taken for lost, too: it is pushed once more, and the server has done it.
func (p *Base) lost(ctx context.Context, db id.DatabaseID, u PushedState, known, has int64) error {
	p.Journal.Log(ctx, ports.JournalEvent{What: u.Name + ".lost", DatabaseID: db})
	return p.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		applied := u.Applied(&stored)
		if *applied != known {
			return nil
		}
		*applied = has
		return tx.Databases().Save(ctx, stored)
	})
}
