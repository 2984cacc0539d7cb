package fakeagent

import (
	"maps"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// isolate takes a database out of service; a repeated command finds it so.
func (s *Server) isolate(f ports.Fence, c command.Isolate) (none command.None, err error) {
	d, ok := s.databases[c.DatabaseID]
	switch {
	case !ok:
		return none, command.Refuse(command.ReasonNotFound, "the server has no database %s", c.DatabaseID)
	case d.isolated:
		return none, nil
	case s.faults.busy > 0:
		s.faults.busy--
		clear(d.sessions) // they are ended all the same
		return none, command.Refuse(command.ReasonBusy, "a prepared transaction is in the way")
	}
	clear(d.sessions)
	d.isolated, d.changedBy = true, f.OperationID
	return none, nil
}

// rejoin takes that back.
func (s *Server) rejoin(f ports.Fence, c command.Rejoin) (r command.Rejoined, err error) {
	d, ok := s.databases[c.DatabaseID]
	if !ok {
		return r, command.Refuse(command.ReasonNotFound, "the server has no database %s", c.DatabaseID)
	}
	d.isolated, d.open, d.changedBy = false, c.Open, f.OperationID
	return command.Rejoined{DatabaseOID: d.oid}, nil
}

// purge removes everything of a database.
func (s *Server) purge(c command.Purge) (none command.None, err error) {
	if d, ok := s.databases[c.DatabaseID]; ok && !d.isolated {
		return none, command.Refuse(command.ReasonFailed, "the database is in service")
	}
	delete(s.databases, c.DatabaseID)
	maps.DeleteFunc(s.files, func(k fileKey, _ *file) bool { return k.database == c.DatabaseID })
	return none, nil
}

// Isolated counts the databases that are out of service.
func (s *Server) Isolated() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.databases {
		if d.isolated {
			n++
		}
	}
	return n
}

// Lose drops a database behind the platform's back.
func (s *Server) Lose(db id.DatabaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.databases, db)
}

// keeps reports whether the file of a job stays when its operation is closed.
func (s *Server) keeps(op id.OperationID, j *job) bool {
	if j.spec.ForDeletion {
		d := s.databases[j.spec.DatabaseID]
		return d != nil && d.isolated && d.changedBy == op
	}
	return !j.spec.Passing
}
