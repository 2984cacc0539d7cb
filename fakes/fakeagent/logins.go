package fakeagent

import (
	"maps"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// login is a login of a database: one that came with it, or an additional role. A validity that ends later shuts nobody out:
// PostgreSQL's clock is not the platform's.
type login struct {
	verifier   string // empty: no password
	credential int64  // generation of the last rotation
	open       bool   // LOGIN and the pooler's gate, as far as the login itself goes; the database may be closed all the same
	lapsed     bool   // the password's validity was over when it was set
	until      *time.Time
	connect    bool // the owner lets it connect
	additional bool
	obstructed bool // PostgreSQL refuses every ALTER ROLE of the agent's
	empowered  bool // an administrator has given it an attribute

	madeBy     id.OperationID     // of an additional role
	profile    role.AccessProfile // of an additional role
	limit      int                // of an additional role
	dependents []dependent
}

// loginsOf are the logins with which a database begins.
func loginsOf(c command.EnsureDatabase) map[string]*login {
	logins := map[string]*login{}
	for _, l := range c.Logins {
		logins[l.Username] = &login{verifier: l.Verifier, open: true, connect: true}
	}
	return logins
}

// admits reports whether a log-in with this password gets in from anywhere.
func (d *databaseState) admits(username, password string) bool {
	l, found := d.logins[username]
	return found && d.open && !d.settings.Closed && l.open && !l.lapsed && l.connect && credential.Matches(l.verifier, password)
}

// connections counts the sessions of a login that keep a connection of the pooler's for themselves.
func (d *databaseState) connections(username string) (n int) {
	for c := range d.sessions {
		if c.username == username && !c.shared {
			n++
		}
	}
	return n
}

// disconnect ends the sessions of a login and counts them.
func (d *databaseState) disconnect(username string) int {
	before := len(d.sessions)
	maps.DeleteFunc(d.sessions, func(c *Session, _ bool) bool { return c.username == username })
	return before - len(d.sessions)
}
