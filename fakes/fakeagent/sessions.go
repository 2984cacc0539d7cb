package fakeagent

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/ports"
)

// ErrLogInRefused is all that a customer learns of a log-in that does not get in.
var ErrLogInRefused = errors.New("the log-in was refused")

// Session is a customer's open connection.
type Session struct {
	server *Server
	in     *databaseState
	from   netip.Addr
}

// Connect logs in through the pooler: database is "<name>" or "<name>.transaction". ErrLogInRefused where the database does
// not exist or is closed, the login is not one of its own, the password is wrong or the address is not on its allowlist.
func (s *Server) Connect(from netip.Addr, database, username, password string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(strings.TrimSuffix(database, ".transaction"))
	if d == nil || !d.open || !admits(d.networks, from) || !matches(d.spec.Logins, username, password) {
		return nil, ErrLogInRefused
	}
	session := &Session{server: s, in: d, from: from}
	d.sessions[session] = true
	return session, nil
}

// CanLogIn reports whether a log-in gets in. It leaves no session behind.
func (s *Server) CanLogIn(from netip.Addr, database, username, password string) bool {
	session, err := s.Connect(from, database, username, password)
	if err != nil {
		return false
	}
	session.Close()
	return true
}

// Alive reports whether the server has not ended the session.
func (c *Session) Alive() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.in.sessions[c]
}

// Close ends the session.
func (c *Session) Close() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.in.sessions, c)
}

func admits(networks []netip.Prefix, from netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(from.Unmap()) {
			return true
		}
	}
	return len(networks) == 0
}

func matches(logins []ports.LoginSpec, username, password string) bool {
	for _, l := range logins {
		if l.Username == username {
			return credential.Matches(l.Verifier, password)
		}
	}
	return false
}
