package fakeagent

import "github.com/pgherd/pgherd/core/id"

// Lose drops a database behind the platform's back, with its logins. Its files stay.
func (s *Server) Lose(db id.DatabaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.databases, db)
}

// LoseOverlay drops the groups of a database with a single login behind the platform's back.
func (s *Server) LoseOverlay(db id.DatabaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.databases[db].overlay, s.databases[db].spread = false, false
}
