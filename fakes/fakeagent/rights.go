package fakeagent

import (
	"slices"

	"github.com/pgherd/pgherd/core/role"
)

// rights are the privileges that the platform gives with an access profile, on all tables and sequences of the owner.
var rights = map[role.AccessProfile][]string{
	role.ReadOnly:  {"SELECT"},
	role.ReadWrite: {"SELECT", "INSERT", "UPDATE", "DELETE", "USAGE"},
	role.Custom:    {},
}

// May reports whether an additional role has a privilege ("SELECT", "INSERT" ... on the owner's tables, "USAGE" on their
// sequences, "CREATE" and "TEMPORARY" in the database). The fake has no tables: which one it is makes no difference.
func (s *Server) May(username, privilege, _ string) (may bool) {
	s.handle(username, func(d *databaseState, l *login) {
		may = l.open && d.hasRights() && slices.Contains(rights[l.profile], privilege)
	})
	return may
}

// GroupsHave reports whether the groups of a database have all that access profiles promise.
func (s *Server) GroupsHave(database string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(database)
	return d != nil && d.hasRights()
}

// LogInDirectly reports whether PostgreSQL itself, past the pooler, lets a login into a database.
func (s *Server) LogInDirectly(database, username, password string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(database)
	return d != nil && d.admits(username, password)
}
