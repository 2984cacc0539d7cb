package base

import (
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// PushedState is a part of databases' records that is sent to their servers outside of operations. Its generation grows with
// every change; a change is stored first and then pushed, and a periodic task pushes again what a crash or an outage left
// behind. A second one finds what a server that was restored from a backup has lost.
type PushedState struct {
	Name string       // begins the names of its log lines
	Task string       // names its periodic task
	Kind command.Kind // of the command that is sent
	Due  ports.DueWork
	// Generation is where a record has the stored generation, and Applied that which the server is known to have.
	Generation, Applied func(r *database.Record) *int64
	// Command is what would be sent of what is stored.
	Command func(ctx context.Context, db id.DatabaseID) (command.Command, error)
	// Send sends what is stored, unless the server is known to have it, and records that it has. It returns the generation
	// that it sent.
	Send func(ctx context.Context, db id.DatabaseID) (sent int64, err error)
}

// RegisterPushed registers the periodic tasks. One task for all parts finds what servers have lost.
func (p *Base) RegisterPushed(u PushedState) {
	if len(p.pushed) == 0 {
		p.registerLost()
	}
	p.pushed = append(p.pushed, u)
	rounds.RegisterServers(p.Rounds, rounds.ServerTask[database.Record]{
		Name: u.Task, Every: RoundEvery, Limit: p.RoleWait, Work: brake.Harmless, Of: OfRecord,
		Key: func(r database.Record) string { return string(r.ID) },
		Find: func(ctx context.Context, now time.Time) ([]database.Record, error) {
			return p.Due(ctx, u.Due, now, RoundMost)
		},
		Do: func(ctx context.Context, _ time.Time, r database.Record) error {
			return p.UnlessSettled(ctx, u.Name+".pending", r.ID, p.Push(ctx, r.ID, u))
		},
	})
}

// pushTries is how often one push sends where others change what is stored at the same time.
const pushTries = 3

// Push makes the server of a database enforce what is stored. The errors are those of ports.Agent.
func (p *Base) Push(ctx context.Context, db id.DatabaseID, u PushedState) (err error) {
	for range pushTries {
		var sent int64
		if sent, err = u.Send(ctx, db); !Superseded(err) {
			return err
		}
		if err := p.surpass(ctx, db, u, sent, err); err != nil {
			return err
		}
	}
	return err
}

// Resend stores what is stored of a database as something newer, and pushes it: its server does again what it believes to have
// done. kind is that of the command.
func (p *Base) Resend(ctx context.Context, db id.DatabaseID, kind command.Kind) error {
	i := slices.IndexFunc(p.pushed, func(u PushedState) bool { return u.Kind == kind })
	u := p.pushed[i] // there is no other kind
	err := p.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		*u.Generation(&stored)++
		return tx.Databases().Save(ctx, stored)
	})
	if err != nil {
		return err
	}
	return p.Push(ctx, db, u)
}

// surpass moves what is stored past the agent's generations, unless another process has stored something newer since it was
// sent.
func (p *Base) surpass(ctx context.Context, db id.DatabaseID, u PushedState, sent int64, refusal error) error {
	p.Log(ctx, u.Name+".overtaken", db, refusal)
	return p.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		generation := u.Generation(&stored)
		if *generation != sent {
			return nil
		}
		*generation = NextGeneration(sent, refusal)
		return tx.Databases().Save(ctx, stored)
	})
}

// PushTo sends what is stored of a database to a server that is not its own yet, and returns the generations that it has then, by
// the kinds of the commands. The errors are those of ports.Agent.
func (p *Base) PushTo(ctx context.Context, a ports.Agent, db id.DatabaseID) (map[string]int64, error) {
	has := map[string]int64{}
	for _, u := range p.pushed {
		for try := 1; ; try++ {
			c, err := u.Command(ctx, db)
			if err != nil {
				return nil, err
			}
			sent := c.About().Generation
			if _, err = a.Do(ctx, ports.Fence{}, c); err == nil {
				has[string(u.Kind)] = sent
				break
			}
			if !Superseded(err) || try == pushTries {
				return nil, err
			}
			if err := p.surpass(ctx, db, u, sent, err); err != nil {
				return nil, err
			}
		}
	}
	return has, nil
}

// Arrived changes the record of a database that has come to another server, which has these generations: what it lacks is due.
func (p *Base) Arrived(r *database.Record, has map[string]int64) {
	for _, u := range p.pushed {
		*u.Applied(r) = 0
		if g := has[string(u.Kind)]; g == *u.Generation(r) {
			*u.Applied(r) = g
		}
	}
}

// PushAll makes the server of a database enforce all that is stored, as far as it is not known to do so.
func (p *Base) PushAll(ctx context.Context, db id.DatabaseID) error {
	for _, u := range p.pushed {
		if err := p.Push(ctx, db, u); err != nil {
			return err
		}
	}
	return nil
}
