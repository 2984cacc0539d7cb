package server

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// ErrRegistered is VALIDATION_ERROR for an agent that is registered already, perhaps by another address.
func ErrRegistered() error {
	return fault.Invalid("agentUrl", "leads to a server that is registered already")
}

// Contents is what the metadata have of a server.
type Contents struct {
	Databases  int `db:"databases"`  // without those that are deleted
	Moving     int `db:"moving"`     // databases that move to it or from it, and are those of another server now
	Deleted    int `db:"deleted"`    // until they are purged; they can be recovered before
	Sold       int `db:"sold"`       // connections that its databases may have together
	Backups    int `db:"backups"`    // with those of deleted databases
	Operations int `db:"operations"` // that are open
	Changes    int `db:"changes"`    // of logins, that are pending
	Forwards   int `db:"forwards"`   // databases that it has left, and for which it sends on who still comes
	Kept       int `db:"kept"`       // backups that did not come along with a database that has left it
}

// Removable refuses to remove a server that still has something: VALIDATION_ERROR on "server", which says what.
func (s Contents) Removable(name string) error {
	var left []string
	for _, k := range []struct {
		n         int
		one, many string
	}{
		{s.Databases, "1 database", "%d databases"},
		{s.Moving, "1 database that moves to it or from it", "%d databases that move to it or from it"},
		{s.Deleted, "1 deleted database", "%d deleted databases"},
		{s.Backups, "1 backup", "%d backups"}, {s.Operations, "1 open operation", "%d open operations"},
		{s.Changes, "1 pending change of a login", "%d pending changes of logins"},
		{s.Forwards, "1 database that it sends on for", "%d databases that it sends on for"},
		{s.Kept, "1 backup that did not come along with its database", "%d backups that did not come along with their databases"},
	} {
		switch {
		case k.n == 1:
			left = append(left, k.one)
		case k.n > 1:
			left = append(left, fmt.Sprintf(k.many, k.n))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fault.Invalid("server", "%s still has %s: delete the databases and wait until they are purged, or move them; "+
		"operation fail ends a move, forward end what is sent on, and --lose-backups gives up backups that did not come along", name,
		strings.Join(left, ", "))
}
