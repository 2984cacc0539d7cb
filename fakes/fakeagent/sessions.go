package fakeagent

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
)

// ErrLogInRefused is all that a customer learns of a log-in that does not get in.
var ErrLogInRefused = errors.New("the log-in was refused")

// Session is a customer's open connection.
type Session struct {
	server   *Server
	in       *databaseState
	from     netip.Addr
	username string
	shared   bool // by transaction: it holds no connection of its own
}

// Connect logs in through the pooler: database is "<name>" or "<name>.transaction". ErrLogInRefused where the database does
// not exist or is closed, the login is not one of its own, is shut or may not connect, the password is wrong, the address is not
// on its allowlist, or the login's connections are all in use. A server that has left the database sends on to the one that has
// it.
func (s *Server) Connect(from netip.Addr, database, username, password string) (*Session, error) {
	name, shared := strings.CutSuffix(database, ".transaction")
	if s.sendsOn(name) {
		return s.connectOn(from, database, username, password)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(name)
	if d == nil || !admits(d.networks, from) && !slices.Contains(d.welcome, from) || !d.admits(username, password) {
		return nil, ErrLogInRefused
	}
	if l := d.logins[username]; l.limit > 0 && d.connections(username) >= l.limit {
		return nil, ErrLogInRefused
	}
	session := &Session{server: s, in: d, from: from, username: username, shared: shared}
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

// Load adds SQL to what is in the database; false: the server has ended the session.
func (c *Session) Load(sql string) bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if !c.in.sessions[c] {
		return false
	}
	c.server.loaded(c.in, sql)
	return true
}

// Rows counts what was put into a table, as of Server.Rows; false: the server has ended the session.
func (c *Session) Rows(table string) (n int, alive bool) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.in.rows(table), c.in.sessions[c]
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
