// Package checkups compares what servers have with the metadata, on a service that works on, and repairs what can be repaired
// without losing anything. Package core/doctor says what a difference is.
package checkups

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Checkups examines servers.
type Checkups struct {
	base     *base.Base
	forwards Forwards
}

// Forwards has servers send on who still comes for databases that they have left.
type Forwards interface {
	// TellForward has a server send on, for a database, as the metadata have it.
	TellForward(ctx context.Context, db id.DatabaseID, on id.ServerID) error
	// EndUnknown has a server send nobody on for a database for which the metadata do not have it do so.
	EndUnknown(ctx context.Context, db id.DatabaseID, on id.ServerID) error
}

// New makes the use cases.
func New(p *base.Base, f Forwards) *Checkups { return &Checkups{base: p, forwards: f} }

// Options say how to compare.
type Options struct {
	// Deep also examines the inside of every database, and compares every backup file with its checksum.
	Deep bool
	// Repair does what can be done about each finding.
	Repair bool
	// Patience is how long a difference is checked again; by default DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is longer than most of what is under way takes. It changes meanwhile, and is no finding.
const DefaultPatience = 13 * time.Second

// Diagnosis is a finding on a server, and what was done about it.
type Diagnosis struct {
	Server server.Server
	doctor.Finding
	Repaired bool
	Failed   error // why a repair was not done
}

// records are those of the databases of a server.
func (c *Checkups) records(ctx context.Context, of server.Server) ([]database.Record, error) {
	return ports.Read(ctx, c.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Storage().Between(ctx, of.ID, "", "")
	})
}

// Examine compares a server with the metadata. It compares again where something differs: a finding is what every comparison
// has shown, so that it finds nothing on a server where work goes on as it should. The error is that of the metadata; a server
// that does not answer is a finding.
func (c *Checkups) Examine(ctx context.Context, s server.Server, o Options) ([]Diagnosis, error) {
	found, err := c.lasting(ctx, s, o.pauses())
	if err != nil {
		return nil, err
	}
	if o.Deep {
		inside, err := c.insideAll(ctx, s)
		if err != nil {
			return nil, err
		}
		damaged, err := c.checksums(ctx, s)
		if err != nil {
			return nil, err
		}
		found = slices.Concat(found, inside, damaged)
	}
	doctor.Sort(found)
	list := make([]Diagnosis, 0, len(found))
	for _, f := range found {
		list = append(list, Diagnosis{Server: s, Finding: f})
	}
	if o.Repair {
		return list, c.repair(ctx, s, o, list)
	}
	return list, nil
}

// pauses are those between comparisons. Most of what is under way is over after the first.
func (o Options) pauses() []time.Duration {
	unit := cmp.Or(o.Patience, DefaultPatience) / 13
	return []time.Duration{unit, 3 * unit, 9 * unit}
}

// lasting compares until nothing differs or no pause is left. A comparison in which the agent was silent says nothing of what
// others have found: it is only told that the agent was silent at last, or always.
func (c *Checkups) lasting(ctx context.Context, s server.Server, pauses []time.Duration) ([]doctor.Finding, error) {
	found, silent, err := c.compareOnce(ctx, s)
	heard := silent == nil
	for i, pause := range pauses {
		settled := silent == nil && (len(found) == 0 || i > 0 && !slices.ContainsFunc(found, differs))
		if err != nil || settled {
			return found, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		var now []doctor.Finding
		now, silent, err = c.compareOnce(ctx, s)
		switch {
		case silent != nil:
		case heard:
			found = doctor.Lasting(found, now)
		default:
			found, heard = now, true
		}
	}
	return append(found, silent...), err
}

// differs reports whether a finding is more than a notice, which need not be checked again.
func differs(f doctor.Finding) bool { return !f.Code.Notice() }

// compareOnce compares a server with the metadata. Where its agent does not say all, that is what silent says, and nothing is
// found.
func (c *Checkups) compareOnce(ctx context.Context, s server.Server) (found, silent []doctor.Finding, err error) {
	agent, err := c.base.Fleet.Agent(s)
	if err != nil { // as where its secret cannot be read
		away := doctor.Finding{Code: doctor.ServerUnreachable, Subject: s.Name, Has: err.Error()}
		return nil, []doctor.Finding{away}, nil //nolint:nilerr // it is the finding
	}
	l := &checkup{base: c.base, server: s, agent: agent, busy: map[string]bool{}}
	l.files.Databases = map[id.DatabaseID]doctor.FilesOf{}
	err = l.all(ctx)
	var none *silence
	if errors.As(err, &none) {
		return nil, []doctor.Finding{none.finding(s, "")}, ctx.Err()
	}
	return l.found, nil, err
}

// silence is the error of a question that an agent has not answered, or has refused.
type silence struct{ cause error }

func (s *silence) Error() string { return "the agent has not said it: " + s.cause.Error() }

// finding says of a server whether its agent is away or has refused, and why. when is added of one that is away.
func (s *silence) finding(of server.Server, when string) doctor.Finding {
	var no *command.Refusal
	switch {
	case command.RefusedFor(s.cause, command.ReasonOtherProtocol):
		return doctor.Finding{Code: doctor.OtherProtocol, Subject: of.Name}
	case errors.As(s.cause, &no):
		return doctor.Finding{Code: doctor.ServerRefuses, Subject: of.Name, Has: no.Message}
	}
	return doctor.Finding{Code: doctor.ServerUnreachable, Subject: of.Name, Has: when}
}

func (s *silence) Unwrap() error { return s.cause }

// ask asks the agent of a server.
func ask[R any](ctx context.Context, l *checkup, q command.Asking[R]) (answer R, err error) {
	if answer, err = base.Ask(ctx, l.agent, q); err != nil {
		return answer, &silence{err}
	}
	return answer, nil
}

// Patients are the servers to examine: a disabled one may be gone that neither has a database nor sends on for one, and is left
// out.
func (c *Checkups) Patients(ctx context.Context) (list []server.Server, err error) {
	return ports.Read(ctx, c.base.Store, func(ctx context.Context, tx ports.Tx) (list []server.Server, err error) {
		all, err := tx.Servers().List(ctx)
		for _, s := range all {
			if err != nil {
				return nil, err
			}
			var has server.Contents
			if !s.Enabled {
				has, err = tx.Servers().Contents(ctx, s.ID)
			}
			if s.Enabled || has.Databases+has.Deleted+has.Forwards > 0 {
				list = append(list, s)
			}
		}
		return list, err
	})
}
