package fakeagent

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// close closes an operation. What it has finished, a database or a backup file, stays and makes that ReasonCompleted, also where
// the file did not come back equal.
func (s *Server) close(f ports.Fence) (none command.None, err error) {
	if f.OperationID == "" {
		return none, command.Refuse(command.ReasonInvalid, "there is no operation to close")
	}
	if err := s.ledger.hear(f, true); err != nil {
		return none, err
	}
	if s.completed(f.OperationID) {
		return none, command.Refuse(command.ReasonCompleted, "the operation is complete")
	}
	s.abandon(f.OperationID)
	s.ledger.operations[f.OperationID].closed = true
	return none, nil
}

func (s *Server) completed(op id.OperationID) bool {
	if j := s.jobs[op]; s.ended[op] || j != nil && !j.passes() && j.over() {
		return true
	}
	if j := s.extensionJobs[op]; j != nil && j.change.State == command.ExtensionDone {
		return true
	}
	if j := s.looks[op]; j != nil && j.look.State == command.LookDone {
		return true
	}
	if r := s.restores[op]; r != nil && r.switched && !r.moving {
		return true
	}
	for _, d := range s.databases {
		if d.madeBy == op && !d.empty {
			return true
		}
	}
	return false
}

// firstOID is where PostgreSQL's own end.
const firstOID = 16383

// makeDatabase makes a database; one that another operation has made is only proven again.
func (s *Server) makeDatabase(f ports.Fence, c command.EnsureDatabase) error {
	if d, found := s.databases[c.DatabaseID]; found {
		if d.isolated {
			return command.Refuse(command.ReasonConflict, "the database is out of service")
		}
		if !c.Closed {
			return proveAgain(d, c)
		}
		if !d.empty || d.madeBy != f.OperationID {
			return command.Refuse(command.ReasonConflict, "the database is not one that this operation makes and has yet to fill")
		}
		return nil
	}
	for _, l := range c.Logins {
		if s.taken(l.Username) {
			return command.Refuse(command.ReasonNameTaken, "the server has a database or login %s", l.Username)
		}
	}
	if s.taken(c.Name) {
		return command.Refuse(command.ReasonNameTaken, "the server has a database or login %s", c.Name)
	}
	if err := proveLogIn(c); err != nil && !c.Closed {
		return err
	}
	s.lastOID++
	s.databases[c.DatabaseID] = &databaseState{
		id: c.DatabaseID, account: c.AccountID, oid: firstOID + s.lastOID, name: c.Name, model: c.RoleModel, cap: c.ConnectionCap,
		madeBy: f.OperationID, key: c.BackupKey, made: s.clock.Now(), logins: loginsOf(c), open: !c.Closed, empty: c.Closed,
		sessions: map[*Session]bool{}, extensions: make(map[extension.Name]installed),
	}
	s.takeBack(s.databases[c.DatabaseID])
	if !c.Closed {
		s.remember(s.databases[c.DatabaseID])
	}
	return nil
}

func proveAgain(d *databaseState, c command.EnsureDatabase) error {
	if d.name != c.Name || d.model != c.RoleModel {
		return command.Refuse(command.ReasonConflict, "the database stands under another name or role model")
	}
	for _, l := range c.Logins {
		if l.Login == database.OwnerLogin && (d.settings.Closed || d.admits(l.Username, l.Password)) {
			return nil
		}
	}
	return command.Refuse(command.ReasonFailed, "the owner could not log in")
}

// proveLogIn is the log-in of the owner that a real agent tries through the pooler.
func proveLogIn(c command.EnsureDatabase) error {
	for _, l := range c.Logins {
		if l.Login != database.OwnerLogin {
			continue
		}
		if l.Username != c.Name {
			return command.Refuse(command.ReasonInvalid, "the owner login has another name than the database")
		}
		if !credential.Matches(l.Verifier, l.Password) {
			return command.Refuse(command.ReasonFailed, "the owner could not log in")
		}
		return nil
	}
	return command.Refuse(command.ReasonInvalid, "the database has no owner login")
}

// setAccess closes and ends connections first, for every login; opening touches those that may log in.
func (d *databaseState) setAccess(c command.SetAccess) (none command.None, err error) {
	if c.Open && d.empty {
		return none, command.Refuse(command.ReasonFailed, "the data of the database is yet to come")
	}
	if !c.Open || c.Disconnect {
		d.open = false
	}
	if c.Disconnect {
		clear(d.sessions)
	}
	for _, l := range d.logins {
		if l.obstructed && (!c.Open || c.Disconnect || l.open) {
			return none, errObstructed
		}
	}
	d.open = c.Open
	return none, nil
}

func (d *databaseState) setAllowlist(c command.SetAllowlist) (none command.None, err error) {
	d.networks = slices.Compact(slices.SortedFunc(slices.Values(c.Networks), netip.Prefix.Compare))
	maps.DeleteFunc(d.sessions, func(s *Session, _ bool) bool { return !admits(d.networks, s.from) })
	return none, nil
}

// AccountOf returns whose a database is, as the agent was told; empty where it was not.
func (s *Server) AccountOf(db id.DatabaseID) id.AccountID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[db]; d != nil {
		return d.account
	}
	return ""
}
