package fakeagent

import (
	"maps"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// isolatedName is what a database is called while it is out of service.
func isolatedName(db id.DatabaseID) string { return "deleted_" + id.Compact(db) }

// inService reports whether there is a database that customers could be in.
func (s *Server) inService(db id.DatabaseID) bool {
	d := s.databases[db]
	return d != nil && !d.isolated
}

func (s *Server) isolate(f ports.Fence, c command.Isolate) (none command.None, err error) {
	d := s.databases[c.DatabaseID]
	switch {
	case d == nil:
		return none, errNoDatabase(c.DatabaseID)
	case d.empty:
		return none, command.Refuse(command.ReasonFailed, "the data of the database is yet to come")
	case s.faults.busy > 0:
		s.faults.busy--
		d.open = false
		clear(d.sessions) // they are ended all the same
		return none, command.Refuse(command.ReasonBusy, "sessions of the database cannot be ended")
	}
	s.see()
	d.open, d.isolated = false, true
	clear(d.sessions)
	if j := s.jobs[f.OperationID]; j != nil && j.spec.ForDeletion {
		delete(s.jobs, f.OperationID) // and not its file
	}
	s.ended[f.OperationID] = true
	return none, nil
}

func (s *Server) rejoin(f ports.Fence, c command.Rejoin) (command.Rejoined, error) {
	d := s.databases[c.DatabaseID]
	switch {
	case d == nil:
		return command.Rejoined{}, errNoDatabase(c.DatabaseID)
	case d.empty && c.Open:
		return command.Rejoined{}, command.Refuse(command.ReasonFailed, "the data of the database is yet to come")
	}
	d.isolated, d.open = false, d.open || c.Open
	s.ended[f.OperationID] = true
	return command.Rejoined{DatabaseOID: d.oid}, nil
}

// purge leaves nothing but what operations were told.
func (s *Server) purge(f ports.Fence, c command.Purge) (none command.None, err error) {
	if s.inService(c.DatabaseID) {
		return none, command.Refuse(command.ReasonInService, "the database is in service")
	}
	if err := s.ledger.vouchedFor(c.DatabaseID, f.OperationID); err != nil {
		return none, err
	}
	maps.DeleteFunc(s.files, func(key fileKey, _ *file) bool { return key.database == c.DatabaseID })
	s.forgetDatabase(c.DatabaseID)
	s.ended[f.OperationID] = true
	return none, nil
}

// forgetDatabase removes a database and all that belongs to it, but its backups.
func (s *Server) forgetDatabase(db id.DatabaseID) {
	delete(s.databases, db)
	delete(s.archive.kept, db)
	maps.DeleteFunc(s.jobs, func(_ id.OperationID, j *job) bool { return j.spec.DatabaseID == db })
	maps.DeleteFunc(s.restores, func(_ id.OperationID, r *restoreJob) bool { return r.database == db })
	for key := range s.uploads {
		if key.database == db {
			s.dropUpload(command.DropUpload{DatabaseID: key.database, UploadID: key.upload})
		}
	}
	s.forgetTold(db)
}

// forgetTold has the ledger forget what it was told of a database outside of operations.
func (s *Server) forgetTold(db id.DatabaseID) {
	own := command.Purge{DatabaseID: db}.About().Resource
	about := func(resource string) bool { return resource == own || strings.HasPrefix(resource, own+"/") }
	maps.DeleteFunc(s.ledger.generations, func(of generationKey, _ *command.Generations) bool { return about(of.resource) })
	maps.DeleteFunc(s.ledger.commands, func(key commandKey, _ *commandState) bool {
		return key.operation == "" && about(key.resource)
	})
}

// serves refuses a database that is not in service.
func (s *Server) serves(db id.DatabaseID) error {
	switch d := s.databases[db]; {
	case d == nil:
		return errNoDatabase(db)
	case d.isolated:
		return command.Refuse(command.ReasonIsolated, "the database %s stands, and is out of service", db)
	}
	return nil
}

func errNoDatabase(db id.DatabaseID) error {
	return command.Refuse(command.ReasonNotFound, "the server has no database %s", db)
}
