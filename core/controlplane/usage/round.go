package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// round asks the agents what they have seen. It goes by the time of the host: one whose clock is wrong waits, and meanwhile the
// agents keep it.
type round struct{ base *base.Base }

func register(p *base.Base) {
	r := round{p}
	rounds.RegisterServers(p.Rounds, rounds.ServerTask[ports.UsageServer]{
		Name: "usage of databases", Every: base.RoundEvery, Work: brake.Schedules, Find: r.due, Do: r.take,
		Of: func(s ports.UsageServer) (id.ServerID, id.AccountID) { return s.ID, "" },
	})
}

// due lists the servers whose agents are to be asked, whichever host asked them last.
func (r round) due(ctx context.Context, now time.Time) ([]ports.UsageServer, error) {
	list, err := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.UsageServer, error) {
		return tx.Usage().Servers(ctx)
	})
	return slices.DeleteFunc(list, func(s ports.UsageServer) bool { return !s.Taken.Due(now) }), err
}

// take stores what the agent of a server has seen since it was last asked, in one transaction with its position: what another
// host has stored meanwhile is not stored again, and after an error all comes again. An agent that has nothing yet is asked again
// soon.
func (r round) take(ctx context.Context, now time.Time, s ports.UsageServer) error {
	seen, position, err := r.ask(ctx, s)
	if err != nil || len(seen) == 0 {
		return r.base.UnlessSettled(ctx, "usage.not_asked", "", err)
	}
	err = r.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		taken, err := tx.Usage().LockTaken(ctx, s.ID)
		if err == nil && taken.Position != s.Taken.Position {
			err = base.ErrSettled
		}
		if err != nil {
			return err
		}
		samples, until := taken.Place(seen, now)
		holdings, err := tx.Usage().Holdings(ctx, s.ID, databasesOf(samples))
		if err != nil {
			return err
		}
		stored, err := storedOf(ctx, tx, samples)
		if err != nil {
			return err
		}
		held, lines := core.Hold(samples, stored, holdings)
		if err := tx.Usage().Add(ctx, held, lines); err != nil {
			return err
		}
		return tx.Usage().SetTaken(ctx, core.Taken{ServerID: s.ID, Position: position, Until: until, AskedAt: now})
	})
	return r.base.UnlessSettled(ctx, "usage.not_stored", "", err)
}

func (r round) ask(ctx context.Context, s ports.UsageServer) (seen []core.Stretch, position string, err error) {
	agent, err := r.base.Fleet.Agent(s.Server)
	position = cmp.Or(s.Taken.Position, command.UsageFromStart)
	for more := err == nil; more; {
		var used command.Used
		if used, err = ports.Ask(ctx, agent, command.AskUsage{After: position}); err != nil {
			break
		}
		seen, position, more = append(seen, used.Stretches...), used.Next, used.More
	}
	return seen, position, err
}

// storedOf reads what is stored of the hours of samples, which are sorted by these.
func storedOf(ctx context.Context, tx ports.Tx, samples []core.Sample) ([]core.Sample, error) {
	if len(samples) == 0 {
		return nil, nil
	}
	return tx.Usage().Samples(ctx, databasesOf(samples), core.Period{
		From: samples[0].Hour, To: samples[len(samples)-1].Hour.Add(time.Hour),
	})
}

func databasesOf(samples []core.Sample) (list []id.DatabaseID) {
	for _, s := range samples {
		list = append(list, s.DatabaseID)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
