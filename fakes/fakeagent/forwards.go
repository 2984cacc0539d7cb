package fakeagent

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
)

// forwarded is a database that a server has left, and for which it sends on who still comes.
type forwarded struct {
	name     string
	host     string
	port     int
	ca       string
	failure  string
	networks []netip.Prefix
	logins   map[string]string // verifiers
	until    time.Time
}

// address is where a server comes from to others.
func (s *Server) address() netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, sum([]byte(s.installation))[0]})
}

func (s *Server) setForward(c command.Forward) (command.Forwarded, error) {
	_, again := s.forwards[c.DatabaseID] // as of a database that comes back
	if !again && !s.parts(c) && (s.databases[c.DatabaseID] != nil || s.taken(c.Name) || s.forwarding(c.Name)) {
		return command.Forwarded{}, command.Refuse(command.ReasonNameTaken, "the server has a database %s", c.Name)
	}
	f := &forwarded{
		name: c.Name, host: c.Host, port: c.Port, ca: c.CA, networks: c.Networks, logins: map[string]string{},
		until: c.Until,
	}
	for _, l := range c.Logins {
		f.logins[l.Username] = l.Verifier
	}
	s.forwards[c.DatabaseID] = f
	return command.Forwarded{From: s.address()}, nil
}

// parts reports whether the database is here, and the server has parted with it.
func (s *Server) parts(c command.Forward) bool {
	d := s.databases[c.DatabaseID]
	if d == nil || d.open || d.name != c.Name {
		return false
	}
	for _, m := range s.moves {
		if m.database == d.id && m.parted {
			return true
		}
	}
	return false
}

func (s *Server) forwarding(name string) bool {
	for _, f := range s.forwards {
		if f.name == name {
			return true
		}
	}
	return false
}

// takeBack has the name of a database be this server's again. Of one that comes back, that is once customers are let in.
func (s *Server) takeBack(d *databaseState) {
	maps.DeleteFunc(s.forwards, func(of id.DatabaseID, f *forwarded) bool {
		return f.name == d.name && (of != d.id || !d.empty)
	})
}

func (s *Server) endForward(c command.EndForward) (none command.None, err error) {
	delete(s.forwards, c.DatabaseID)
	return none, nil
}

// setWelcome counts for an isolated database, too, once that is in service again.
func (s *Server) setWelcome(c command.Welcome) (none command.None, err error) {
	d := s.databases[c.DatabaseID]
	if d == nil {
		return none, errNoDatabase(c.DatabaseID)
	}
	d.welcome = slices.Clone(c.From)
	return none, nil
}

// Forwards are the names of the databases for which the server sends on who comes, sorted.
func (s *Server) Forwards() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.forwards {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// LoseForwards has the server forget whom it sends on, as one that was restored from a backup.
func (s *Server) LoseForwards() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.forwards)
}

// listForwards are those that have not ended by themselves.
func (s *Server) listForwards() (list []command.InventoryForward) {
	for _, db := range slices.Sorted(maps.Keys(s.forwards)) {
		if f := s.forwards[db]; s.clock.Now().Before(f.until) {
			list = append(list, command.InventoryForward{
				DatabaseID: db, Name: f.name, Host: f.host, Port: f.port, Until: f.until, Failure: f.failure,
			})
		}
	}
	return list
}

func (s *Server) sendsOn(name string) bool { return slices.Contains(s.Forwards(), name) }

// sentOn is whom the server sends on to another one, as that sees it; false: it does not.
func (s *Server) sentOn(from netip.Addr, name, username, password string) (of id.DatabaseID, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for db, f := range s.forwards {
		verifier := f.logins[username]
		if f.name == name && s.clock.Now().Before(f.until) && admits(f.networks, from) && verifier != "" &&
			credential.Matches(verifier, password) {
			return db, true
		}
	}
	return "", false
}

// connectOn logs in at the server that has a database, for whom this one sends on.
func (s *Server) connectOn(from netip.Addr, database, username, password string) (*Session, error) {
	db, is := s.sentOn(from, strings.TrimSuffix(database, ".transaction"), username, password)
	if is {
		for _, other := range s.fleet.others(s) {
			if other.hasInService(db) && s.knows(db, other.PublicCA()) {
				return other.Connect(s.address(), database, username, password)
			}
		}
	}
	return nil, ErrLogInRefused
}

// SetPublicCA gives the server's pooler a certificate of its own; empty: one that everybody knows.
func (s *Server) SetPublicCA(pem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publicCA = pem
}

// PublicCA is what the server's pooler is known by.
func (s *Server) PublicCA() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publicCA
}

// knows reports whether the server that a forward leads to proves that it is the one, and notes it.
func (s *Server) knows(db id.DatabaseID, shown string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.forwards[db]
	if f == nil {
		return false
	}
	f.failure = ""
	if shown != "" && shown != f.ca {
		f.failure = "the server's certificate is not known"
	}
	return f.failure == ""
}

func (s *Server) hasInService(db id.DatabaseID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inService(db) && s.databases[db].open
}
