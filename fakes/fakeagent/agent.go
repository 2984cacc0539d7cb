package fakeagent

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// agent implements ports.Agent on a server.
type agent struct{ s *Server }

// Ready implements ports.Agent.
func (a agent) Ready(ctx context.Context) error {
	return a.s.answer(ctx, Call{Method: "Ready"}, func() error { return nil })
}

// manyConnections is more than any test sells.
const manyConnections = 200_000

// Connections implements ports.Agent.
func (a agent) Connections(ctx context.Context) (n int, err error) {
	err = a.s.answer(ctx, Call{Method: "Connections"}, func() error { n = manyConnections; return nil })
	return n, err
}

// Close implements ports.Agent. What the operation has finished, a database or a backup file, stays and makes it
// ReasonCompleted, also where the file did not come back equal.
func (a agent) Close(ctx context.Context, f ports.Fence) error {
	return a.s.answer(ctx, Call{Method: "Close", Fence: f}, func() error {
		if f.OperationID == "" {
			return refuse(ports.ReasonInvalid, "there is no operation to close")
		}
		if err := a.s.ledger.hear(f, true); err != nil {
			return err
		}
		if a.s.completed(f.OperationID) {
			return refuse(ports.ReasonCompleted, "the operation is complete")
		}
		a.s.abandon(f.OperationID)
		a.s.ledger.operations[f.OperationID].closed = true
		return nil
	})
}

func (s *Server) completed(op id.OperationID) bool {
	if j := s.jobs[op]; j != nil && (j.report.State == ports.BackupDone || j.report.State == ports.BackupNotVerified) {
		return true
	}
	for _, d := range s.databases {
		if d.madeBy == op {
			return true
		}
	}
	return false
}

// EnsureDatabase implements ports.DatabaseAgent.
func (a agent) EnsureDatabase(ctx context.Context, f ports.Fence, spec ports.DatabaseSpec) error {
	return a.s.answer(ctx, Call{Method: "EnsureDatabase", Fence: f, Database: spec.ID}, func() error {
		stored := withoutPasswords(spec)
		key := commandKey{kind: "ensure", resource: string(spec.ID), generation: 1}
		command, err := a.s.ledger.admit(f, key, stored)
		if err != nil || command.done {
			return err
		}
		if err := a.s.makeDatabase(f, spec, stored); err != nil {
			return err
		}
		a.s.ledger.conclude(key, command, nil)
		return nil
	})
}

// makeDatabase makes a database; one that another operation has made is only proven again.
func (s *Server) makeDatabase(f ports.Fence, spec, stored ports.DatabaseSpec) error {
	if d, found := s.databases[spec.ID]; found {
		return proveAgain(d, spec)
	}
	for _, l := range spec.Logins {
		if s.taken(l.Username) {
			return refuse(ports.ReasonNameTaken, "the server has a database or login %s", l.Username)
		}
	}
	if s.taken(spec.Name) {
		return refuse(ports.ReasonNameTaken, "the server has a database or login %s", spec.Name)
	}
	if err := proveLogIn(spec); err != nil {
		return err
	}
	s.databases[spec.ID] = &databaseState{
		spec: stored, madeBy: f.OperationID, logins: loginsOf(stored), open: true, sessions: map[*Session]bool{},
	}
	return nil
}

func proveAgain(d *databaseState, spec ports.DatabaseSpec) error {
	if d.spec.Name != spec.Name || d.spec.RoleModel != spec.RoleModel {
		return refuse(ports.ReasonConflict, "the database stands under another name or role model")
	}
	for _, l := range spec.Logins {
		if l.Login == database.OwnerLogin && d.admits(l.Username, l.Password) {
			return nil
		}
	}
	return refuse(ports.ReasonFailed, "the owner could not log in")
}

// proveLogIn is the log-in of the owner that a real agent tries through the pooler.
func proveLogIn(spec ports.DatabaseSpec) error {
	for _, l := range spec.Logins {
		if l.Login != database.OwnerLogin {
			continue
		}
		if l.Username != spec.Name {
			return refuse(ports.ReasonInvalid, "the owner login has another name than the database")
		}
		if !credential.Matches(l.Verifier, l.Password) {
			return refuse(ports.ReasonFailed, "the owner could not log in")
		}
		return nil
	}
	return refuse(ports.ReasonInvalid, "the database has no owner login")
}

func withoutPasswords(spec ports.DatabaseSpec) ports.DatabaseSpec {
	spec.Logins = slices.Clone(spec.Logins)
	for i := range spec.Logins {
		spec.Logins[i].Password = ""
	}
	slices.SortFunc(spec.Logins, compareLogins)
	return spec
}

// SetAccess implements ports.DatabaseAgent.
func (a agent) SetAccess(ctx context.Context, f ports.Fence, spec ports.AccessSpec) error {
	key := commandKey{kind: "access", resource: string(spec.DatabaseID), generation: spec.Generation}
	call := Call{Method: "SetAccess", Fence: f, Database: spec.DatabaseID}
	return a.s.change(ctx, call, f, key, spec, func(d *databaseState) error {
		// Closing and ending connections comes first, and touches every login; opening touches those that may log in.
		if !spec.Open || spec.Disconnect {
			d.open = false
		}
		if spec.Disconnect {
			clear(d.sessions)
		}
		for _, l := range d.logins {
			if l.obstructed && (!spec.Open || spec.Disconnect || l.open) {
				return errObstructed
			}
		}
		d.open = spec.Open
		return nil
	})
}

// SetAllowlist implements ports.DatabaseAgent.
func (a agent) SetAllowlist(ctx context.Context, spec ports.AllowlistSpec) error {
	spec.Networks = slices.Clone(spec.Networks)
	slices.SortFunc(spec.Networks, netip.Prefix.Compare)
	spec.Networks = slices.Compact(spec.Networks)
	key := commandKey{kind: "allowlist", resource: string(spec.DatabaseID), generation: spec.Generation}
	call := Call{Method: "SetAllowlist", Database: spec.DatabaseID}
	return a.s.change(ctx, call, ports.Fence{}, key, spec, func(d *databaseState) error {
		d.networks = spec.Networks
		maps.DeleteFunc(d.sessions, func(c *Session, _ bool) bool { return !admits(d.networks, c.from) })
		return nil
	})
}

// change carries out a command on a database that stands.
func (s *Server) change(
	ctx context.Context, c Call, f ports.Fence, key commandKey, payload any, apply func(*databaseState) error,
) error {
	return s.answer(ctx, c, func() error {
		command, err := s.ledger.admit(f, key, payload)
		if err != nil || command.done {
			return s.ledger.withGenerations(err, key, nil)
		}
		d, err := s.standing(c.Database)
		if err != nil {
			return err
		}
		if err := apply(d); err != nil {
			return err
		}
		s.ledger.conclude(key, command, nil)
		return nil
	})
}

func (s *Server) standing(db id.DatabaseID) (*databaseState, error) {
	d, ok := s.databases[db]
	if !ok {
		return nil, refuse(ports.ReasonNotFound, "the server has no database %s", db)
	}
	return d, nil
}

// emptyDatabase is about what PostgreSQL 16 takes for a database without a table.
const emptyDatabase = 7_500_000

// DatabaseSize implements ports.DatabaseAgent.
func (a agent) DatabaseSize(ctx context.Context, db id.DatabaseID) (size int64, err error) {
	err = a.s.answer(ctx, Call{Method: "DatabaseSize", Database: db}, func() error {
		d, err := a.s.standing(db)
		if err == nil {
			size = emptyDatabase + int64(len(d.contents))
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}
