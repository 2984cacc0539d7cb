package moves

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/ports"
)

// endTries is how often a server is told that a forward is over of whose generations the metadata know nothing.
const endTries = 3

// TellForward has a server send on, for a database, as the metadata have it, whatever it was told before.
// DATABASE_STATE_CONFLICT: the metadata do not have it do so any more. Errors otherwise as of ports.Agent.
func (m *Moves) TellForward(ctx context.Context, db id.DatabaseID, on id.ServerID) error {
	f, some, err := m.forwardOn(ctx, db, on)
	if err != nil {
		return err
	}
	if !some {
		return fault.New(fault.DatabaseStateConflict, "the server is not to send on any more who comes for the database")
	}
	f.Sent = ""
	untold, err := m.lookNow(ctx, f)
	if err == nil {
		err = untold
	}
	return err
}

// EndUnknown has a server send nobody on for a database, of which the metadata do not have it. DATABASE_STATE_CONFLICT: they have
// it by now. Errors otherwise as of ports.Agent.
func (m *Moves) EndUnknown(ctx context.Context, db id.DatabaseID, on id.ServerID) error {
	f, some, err := m.forwardOn(ctx, db, on)
	if err != nil {
		return err
	}
	if some {
		return fault.New(fault.DatabaseStateConflict, "the metadata have the server send on by now: forward end ends it")
	}
	agent, err := m.base.AgentOf(ctx, on)
	for range endTries {
		if err == nil || base.Superseded(err) {
			f, err = m.end(ctx, agent, f)
		}
		if !base.Superseded(err) {
			break
		}
	}
	return err
}

// forwardOn is the forward of a database by a server; where there is none, one that only names both.
func (m *Moves) forwardOn(ctx context.Context, db id.DatabaseID, on id.ServerID) (f move.Forward, some bool, err error) {
	all, err := ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]move.Forward, error) {
		return tx.Forwards().Of(ctx, db)
	})
	at := slices.IndexFunc(all, func(f move.Forward) bool { return f.ServerID == on })
	if at < 0 {
		return move.Forward{DatabaseID: db, ServerID: on}, false, err
	}
	return all[at], true, err
}
