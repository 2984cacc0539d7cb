package checkups

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// insideAll has the agent examine the inside of every database in service, one after another. If it does not answer, that is a
// finding already, and nothing is said of what is left.
func (c *Checkups) insideAll(ctx context.Context, s server.Server) (found []doctor.Finding, err error) {
	agent, err := c.base.Fleet.Agent(s)
	if err != nil {
		return nil, nil //nolint:nilerr // the finding of the first comparison
	}
	l := &checkup{base: c.base, server: s, agent: agent}
	records, err := c.records(ctx, s)
	for _, r := range records {
		if err != nil {
			break
		}
		var of []doctor.Finding
		of, err = l.inside(ctx, r)
		found = append(found, of...)
	}
	var silent *silence
	if errors.As(err, &silent) && ctx.Err() == nil {
		return append(found, silent.finding(s, "in the middle")), nil
	}
	return found, err
}

// inside examines the inside of a database, and once more where something differs: what an operation has changed in between is
// no finding.
func (l *checkup) inside(ctx context.Context, r database.Record) (found []doctor.Finding, err error) {
	for again := range 2 {
		want, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) (*doctor.Database, error) {
			return l.inService(ctx, tx, r.ID)
		})
		if err != nil || want == nil {
			return nil, err
		}
		has, err := ask(ctx, l, command.AskRights{DatabaseID: r.ID})
		switch {
		case command.RefusedFor(err, command.ReasonNotFound), command.RefusedFor(err, command.ReasonIsolated):
			// the comparison from outside reports that
			return nil, nil
		case command.RefusedFor(err, command.ReasonFailed):
			has = command.Rights{Unread: "PostgreSQL refuses it"}
		case err != nil:
			return nil, err
		}
		now := doctor.ExamineRights(want, has)
		if again > 0 {
			now = doctor.Lasting(found, now)
		}
		if found = now; len(found) == 0 {
			break
		}
	}
	return found, nil
}

// inService is a database in service as it is now; nil where it is none, or work is under way on it.
func (l *checkup) inService(ctx context.Context, tx ports.Tx, db id.DatabaseID) (*doctor.Database, error) {
	if under, err := busy(ctx, tx, db); err != nil || under {
		return nil, err
	}
	list, err := tx.Storage().OnServer(ctx, l.server.ID, []id.DatabaseID{db})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if _, serves := doctor.Open(list[0].Status); !serves {
		return nil, nil
	}
	return &doctor.Database{Record: list[0]}, nil
}
