// Package drills has each server with an archive prove, once a day, that a random second of a random database can be had back.
package drills

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// The crash points of a drill.
const (
	CrashBegun = "drill.begun" // it is stored, and its agent knows nothing of it yet
	CrashFound = "drill.found" // its agent has said how it ended, and that is not stored yet
)

// CrashPoints lists them.
var CrashPoints = []string{CrashBegun, CrashFound}

const (
	// every is how often there is a look for drills that are due, and how often an agent is asked how far one is.
	every = 10 * time.Second
	// tries is how many databases are looked at until one has a second that can be had back.
	tries = 5
	// backups is how many of a database's are looked at for the last one before the second.
	backups = 500
	// kept is for how long a drill stays on record.
	kept = 366 * 24 * time.Hour
)

type drills struct{ base *base.Base }

// Register registers the periodic task.
func Register(p *base.Base) {
	x := drills{p}
	rounds.RegisterServers(p.Rounds, rounds.ServerTask[ports.DrillServer]{
		Name: "drills", Every: every, Work: brake.Schedules, Find: x.due, Do: x.advance,
		Of: func(s ports.DrillServer) (id.ServerID, id.AccountID) { return s.ID, "" },
	})
}

func (x drills) due(ctx context.Context, now time.Time) ([]ports.DrillServer, error) {
	return ports.Read(ctx, x.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.DrillServer, error) {
		return tx.Drills().Due(ctx, now)
	})
}

// random is a number that nobody can foresee.
func (x drills) random() drill.Random {
	u := x.base.Entropy.UUID()
	return drill.Random(binary.BigEndian.Uint64(u[:]))
}

// advance begins the drill of a server that is due, or asks how far it is, round by round until it is over. All that another
// process has to know of it is stored: whichever asks next goes on.
func (x drills) advance(ctx context.Context, now time.Time, s ports.DrillServer) error {
	d, err := ports.Read(ctx, x.base.Store, func(ctx context.Context, tx ports.Tx) (drill.Drill, error) {
		return tx.Drills().Open(ctx, s.ID)
	})
	if errors.Is(err, ports.ErrNoRow) {
		d, err = x.begin(ctx, now, s)
	}
	if err == nil {
		err = x.ask(ctx, now, s, d)
	}
	return x.base.UnlessSettled(ctx, "drill.not_asked", d.DatabaseID, err)
}

// begin chooses a second, and stores the drill. It is settled where there is nothing to begin.
func (x drills) begin(ctx context.Context, now time.Time, s ports.DrillServer) (d drill.Drill, err error) {
	agent, err := x.base.Fleet.Agent(s.Server)
	if err != nil {
		return d, err
	}
	known, err := ports.Ask(ctx, agent, command.AskCapabilities{})
	if err == nil {
		err = base.CheckProtocol(known)
	}
	if err != nil {
		return d, err
	}
	r := x.random()
	if s.Plan.DueAt.IsZero() { // of a server that is new
		return d, x.plan(ctx, s.Plan, s.Plan.First(now, r, known.Archive != nil))
	}
	if known.Archive == nil {
		return d, x.plan(ctx, s.Plan, s.Plan.Looked(now, r))
	}
	d = drill.Drill{
		ID: base.NewID[id.DrillID](x.base.Entropy), ServerID: s.ID, Repeats: s.Plan.Repeats && s.Plan.DatabaseID != "",
		BegunAt: now, Facts: drill.NoFacts,
	}
	some, err := x.choose(ctx, agent, s.Plan, &d)
	switch {
	case err != nil:
		return d, err
	case !some:
		return d, x.plan(ctx, s.Plan, s.Plan.Looked(now, r))
	case d.PointInTime.IsZero():
		return d, x.plan(ctx, s.Plan, s.Plan.Later(now))
	}
	err = x.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := x.lock(ctx, tx, s.Plan); err != nil {
			return err
		}
		if _, err := tx.Drills().Open(ctx, s.ID); !errors.Is(err, ports.ErrNoRow) {
			return errors.Join(err, base.ErrSettled) // another process has begun
		}
		list, err := tx.Backups().List(ctx, d.DatabaseID, ports.Page{Limit: backups})
		if err != nil {
			return err
		}
		d.Filename, d.ManifestSHA256 = "", ""
		if last, ok := drill.LastBefore(list, d.PointInTime); ok {
			d.Filename, d.ManifestSHA256 = last.Filename, last.ManifestSHA256
		}
		return tx.Drills().Add(ctx, d)
	})
	if err == nil {
		x.base.Crash(CrashBegun)
	}
	return d, err
}

// choose fills in what the plan says or, where it says nothing, what chance does. It finds no moment where none can be had back
// yet; some reports whether there is a database at all.
func (x drills) choose(ctx context.Context, agent ports.Agent, p drill.Plan, d *drill.Drill) (some bool, err error) {
	of := []id.DatabaseID{p.DatabaseID}
	if p.DatabaseID == "" {
		of, err = ports.Read(ctx, x.base.Store, func(ctx context.Context, tx ports.Tx) ([]id.DatabaseID, error) {
			return tx.Drills().Databases(ctx, p.ServerID)
		})
	} else if p.PointInTime != nil {
		d.DatabaseID, d.PointInTime = p.DatabaseID, *p.PointInTime
		return true, nil
	}
	if err != nil || len(of) == 0 {
		return false, err
	}
	for range tries {
		d.DatabaseID = drill.One(of, x.random())
		known, err := ports.Ask(ctx, agent, command.RecoveryWindow{DatabaseID: d.DatabaseID})
		if command.RefusedFor(err, command.ReasonNotFound) { // it is deleted by now
			continue
		}
		if err != nil {
			return true, err
		}
		if at, ok := drill.Second(known.Window, x.random()); ok {
			d.PointInTime = at
			return true, nil
		}
	}
	return true, nil
}

// lock locks the plan of a server. It is settled where another process has changed it since it was read.
func (x drills) lock(ctx context.Context, tx ports.Tx, read drill.Plan) error {
	p, err := tx.Drills().LockPlan(ctx, read.ServerID)
	if err == nil && !p.DueAt.Equal(read.DueAt) {
		err = base.ErrSettled
	}
	return err
}

// plan stores when the next drill is, where none begins.
func (x drills) plan(ctx context.Context, read, next drill.Plan) error {
	err := x.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := x.lock(ctx, tx, read); err != nil {
			return err
		}
		return tx.Drills().SavePlan(ctx, next)
	})
	return cmp.Or(err, base.ErrSettled)
}

// ask asks the agent how far a drill is, and stores how it has ended.
func (x drills) ask(ctx context.Context, now time.Time, s ports.DrillServer, d drill.Drill) error {
	agent, err := x.base.Fleet.Agent(s.Server)
	if err != nil {
		return err
	}
	report, err := ports.Ask(ctx, agent, command.Drill{
		DatabaseID: d.DatabaseID, ID: d.ID, At: d.PointInTime, Filename: d.Filename, ManifestSHA256: d.ManifestSHA256,
	})
	goesOn := err == nil && report.Running() || command.RefusedFor(err, command.ReasonCrowded) || rounds.NoAnswer(err)
	switch {
	case goesOn && d.Overdue(now):
		report = command.DrillReport{Found: drill.Found{Outcome: drill.NotRun, Why: "it had no end within " + drill.MostTime.String()}}
	case goesOn && command.RefusedFor(err, command.ReasonCrowded): // by one that nobody waits for any more
		return nil
	case goesOn:
		return err
	case err != nil:
		report = command.DrillReport{Found: drill.Found{Outcome: drill.NotRun, Why: err.Error()}}
	}
	x.base.Crash(CrashFound)
	return x.conclude(ctx, now, d, report.Found)
}

// conclude stores how a drill has ended, with when the next one is.
func (x drills) conclude(ctx context.Context, now time.Time, d drill.Drill, f drill.Found) error {
	d = d.Ended(now, f)
	err := x.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		p, err := tx.Drills().LockPlan(ctx, d.ServerID)
		if err != nil {
			return err
		}
		err = tx.Drills().End(ctx, d)
		if errors.Is(err, ports.ErrNoRow) { // another process has stored it, or the database is purged
			return base.ErrSettled
		}
		if err != nil {
			return err
		}
		if err := tx.Drills().Forget(ctx, d.ServerID, now.Add(-kept)); err != nil {
			return err
		}
		return tx.Drills().SavePlan(ctx, p.After(d, now, x.random()))
	})
	if err != nil {
		return err
	}
	e := ports.JournalEvent{What: "drill." + string(d.Outcome), DatabaseID: d.DatabaseID, ServerID: d.ServerID}
	if d.Outcome != drill.Proven {
		e.Err = fmt.Errorf("%s: %s", d.PointInTime.UTC().Format(time.RFC3339), d.Why)
	}
	x.base.Journal.Log(ctx, e)
	return nil
}
