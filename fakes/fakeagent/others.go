package fakeagent

import (
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// What follows is done on the server by others than the agent: by the owner of a database, or by an operator. Each
// function reports whether there is such a login, and changes nothing where there is none.

// SetConnect has the owner grant CONNECT to a login, or withdraw it. Open sessions stay.
func (s *Server) SetConnect(username string, on bool) bool {
	return s.handle(username, func(_ *databaseState, l *login) { l.connect = on })
}

// Obstruct has an administrator make a login one that the agent may not change, or takes that back. What the agent does first,
// closing the login's gate, still happens.
func (s *Server) Obstruct(username string, on bool) bool {
	return s.handle(username, func(_ *databaseState, l *login) { l.obstructed = on })
}

// Empower has an administrator give a login an attribute that no login is made with.
func (s *Server) Empower(username string) bool {
	return s.handle(username, func(_ *databaseState, l *login) { l.empowered = true })
}

// ShutLogin has an administrator keep a login out.
func (s *Server) ShutLogin(username string) bool {
	return s.handle(username, func(_ *databaseState, l *login) { l.open = false })
}

// OpenLogin has an admission stop short of its proof: the role may log in, and the ledger does not say so.
func (s *Server) OpenLogin(username string) bool {
	return s.handle(username, func(_ *databaseState, l *login) { l.open = true })
}

// DriftPassword changes the password of a login behind the platform's back.
func (s *Server) DriftPassword(username, password string) bool {
	verifier := credential.Verifier(password, [16]byte{}, credential.Iterations)
	return s.handle(username, func(_ *databaseState, l *login) { l.verifier = verifier })
}

// DropLogin drops a login behind the platform's back. Open sessions stay.
func (s *Server) DropLogin(username string) bool {
	return s.handle(username, func(d *databaseState, _ *login) { delete(d.logins, username) })
}

// AddDependency makes something in the login's own database depend on it.
func (s *Server) AddDependency(username string, d role.Dependency) bool {
	return s.handle(username, func(own *databaseState, l *login) {
		l.dependents = append(l.dependents, dependent{own.id, d})
	})
}

// AddDependencyIn makes something in a database of that name depend on a login; false too where there is no such database. It
// need not be the login's own one, and not of the same account.
func (s *Server) AddDependencyIn(database, username string, d role.Dependency) bool {
	in, found := s.databaseID(database)
	return found && s.handle(username, func(_ *databaseState, l *login) {
		l.dependents = append(l.dependents, dependent{in, d})
	})
}

// DropDependencies removes everything that depends on a login.
func (s *Server) DropDependencies(username string) bool {
	return s.handle(username, func(_ *databaseState, l *login) { l.dependents = nil })
}

// CutShort takes the last byte off a stored file. It reports whether there is one.
func (s *Server) CutShort(db id.DatabaseID, filename string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[fileKey{database: db, filename: backup.Filename(filename)}]
	if f == nil {
		return false
	}
	f.content = f.content[:len(f.content)-1]
	return true
}

// handle changes a login under the server's lock.
func (s *Server) handle(username string, change func(*databaseState, *login)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.databases {
		if l, found := d.logins[username]; found {
			change(d, l)
			return true
		}
	}
	return false
}

func (s *Server) databaseID(name string) (id.DatabaseID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(name)
	if d == nil {
		return "", false
	}
	return d.id, true
}
