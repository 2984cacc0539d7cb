package command

import (
	"net/netip"
	"regexp"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// Who still comes to the server that a database has left is sent on by its pooler, for a while. The pooler there asks nobody: it
// has the verifiers of the logins, with which it both admits a client and logs in at the new server in its name.

// Forward has an agent send on who comes for a database that another server has. It belongs to no operation, is kept over
// restarts, and ends by itself. Said again with a higher generation, it replaces what was said before, and ends the connections
// of logins whose verifier is another one or is not named any more. ReasonNameTaken: the server has a database of that name.
type Forward struct {
	Returns[Forwarded] `json:"-"`
	DatabaseID         id.DatabaseID `json:"databaseId"`
	Name               string        `json:"name"`
	Host               string        `json:"host"` // the new server's public address
	Port               int           `json:"port"`
	// CA are certificates in PEM by which the new server's is known, beside those that this machine trusts. It has to be for Host,
	// too: nobody is sent on to a server that does not prove to be that one.
	CA            string         `json:"ca,omitempty"`
	ConnectionCap int            `json:"connectionCap"` // 0: none
	Networks      []netip.Prefix `json:"networks"`      // as of SetAllowlist
	Logins        []Forwarding   `json:"logins"`
	Until         time.Time      `json:"until"`
	Generation    int64          `json:"-"`
}

// Forwarding is a login that is sent on.
type Forwarding struct {
	Username string `json:"username"`
	Verifier string `json:"-"` // SCRAM-SHA-256; it travels among the secrets, by the name of the login
}

// Forwarded is what the new server has to admit.
type Forwarded struct {
	// From is the address from which this server comes to the new one.
	From netip.Addr `json:"from,omitzero"`
}

// MostForwarded bounds the logins of a database.
const MostForwarded = 1000

// About implements Command.
func (c Forward) About() About { return ofDatabase("forward.set", c.DatabaseID, c.Generation) }

// Secrets are the verifiers.
func (c Forward) Secrets() map[string]string {
	secrets := map[string]string{}
	for _, l := range c.Logins {
		secrets[l.Username] = l.Verifier
	}
	return secrets
}

func (c *Forward) receive(e Envelope) {
	c.Generation = e.Generation
	for i, l := range c.Logins {
		c.Logins[i].Verifier = e.Secrets[l.Username]
	}
}

var hostPattern = regexp.MustCompile(`^[0-9A-Za-z.:_-]{1,253}$`)

// Check implements Command.
func (c Forward) Check() error {
	switch {
	case database.ValidateName(c.Name) != nil, !hostPattern.MatchString(c.Host), c.Port < 1, c.Port > 65535:
		return Refuse(ReasonInvalid, "name, host or port cannot be")
	case c.ConnectionCap < 0, c.ConnectionCap > maxConnections, len(c.Logins) > MostForwarded, c.Until.IsZero():
		return Refuse(ReasonInvalid, "connectionCap, logins or until cannot be")
	case len(c.CA) > maxAuthorities:
		return Refuse(ReasonInvalid, "ca has more than %d bytes", maxAuthorities)
	}
	for _, l := range c.Logins {
		if !usernamePattern.MatchString(l.Username) || !verifierPattern.MatchString(l.Verifier) {
			return Refuse(ReasonInvalid, "logins: %q is none, or has no verifier", l.Username)
		}
	}
	if err := checkNetworks(c.Networks); err != nil {
		return err
	}
	return checkDatabase(c.DatabaseID)
}

// EndForward has an agent send nobody on any more. It is as Forward otherwise, and the same command again changes nothing.
type EndForward struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
	Generation    int64         `json:"-"`
}

// About implements Command.
func (c EndForward) About() About {
	about := ofDatabase("forward.set", c.DatabaseID, c.Generation)
	about.Step = "forward.end"
	return about
}

func (c *EndForward) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command.
func (c EndForward) Check() error { return checkDatabase(c.DatabaseID) }

// Welcome has the new server admit clients whom others send on, whatever the allowlist says of where they come from: the server
// that sends them has asked its own. It belongs to no operation; an empty list admits none. Of an isolated database it counts
// once that is in service again.
type Welcome struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
	From          []netip.Addr  `json:"from"`
	Generation    int64         `json:"-"`
}

// About implements Command.
func (c Welcome) About() About { return ofDatabase("forward.welcome", c.DatabaseID, c.Generation) }

func (c *Welcome) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command.
func (c Welcome) Check() error {
	if len(c.From) > MostWelcome {
		return Refuse(ReasonInvalid, "from: more than %d addresses", MostWelcome)
	}
	for _, a := range c.From {
		if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
			return Refuse(ReasonInvalid, "from: %q is no address", a)
		}
	}
	return checkDatabase(c.DatabaseID)
}

// MostWelcome bounds the servers that send on who comes for a database.
const MostWelcome = 1000
