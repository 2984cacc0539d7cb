package server

import (
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// Survey is what a look at a server shows from where the control plane runs: whether its agent can be reached and asked, what
// that says, and whether customers find a TLS listener at its public address.
type Survey struct {
	Agent  Reach
	Public Reach

	// The others are known where Agent has no trouble.

	Ahead        time.Duration // of our clock, is the agent's; to the second
	Version      string        // of the agent
	Protocol     int           // of the agent; where it is not command.Protocol, nothing below is known
	Installation string        // empty: the agent does not know yet
	Connections  int           // that its databases can have together; 0: the agent does not know
	Postgres     bool          // answers
	PgBouncer    bool          // answers
	Reasons      []string      // why it is not well, in the agent's words
	SlowQueries  bool          // PostgreSQL collects them; not known without Installation
	Programs     []command.Program
	// PostgresVersion is the major version; 0: the agent does not know it yet.
	PostgresVersion int
}

// Reach is how far a look at an address has come.
type Reach struct {
	Address string
	At      netip.AddrPort // what the address led to, where something took the connection
	Trouble Trouble        // empty: none
	Why     string         // the error, where there is trouble
	// Names and Ends are the certificate's, where one was shown.
	Names []string
	Ends  time.Time
}

// Answered reports whether something took the connection, whatever it is.
func (r Reach) Answered() bool { return r.At.IsValid() }

// With is a look that came no further, and why.
func (r Reach) With(t Trouble, err error) Reach {
	r.Trouble, r.Why = t, fault.Line(err)
	return r
}

// Trouble is what kept a look from going on.
type Trouble string

// The troubles.
const (
	NoSuchHost  Trouble = "no such host"
	Refused     Trouble = "refused"
	Silent      Trouble = "silent"
	NoTLS       Trouble = "no TLS"
	UnknownCA   Trouble = "unknown CA"
	OtherName   Trouble = "other name"
	OutOfDate   Trouble = "out of date"  // the certificate has ended, or is not valid yet
	NoCA        Trouble = "no CA"        // the record's holds no certificate
	Sealed      Trouble = "sealed"       // the stored secret cannot be opened
	WrongSecret Trouble = "wrong secret" // the agent does not accept it
	NoAgent     Trouble = "no agent"     // something else answers
	Broken      Trouble = "broken"       // anything else
)

// Troubles lists them.
var Troubles = []Trouble{
	NoSuchHost, Refused, Silent, NoTLS, UnknownCA, OtherName, OutOfDate, NoCA, Sealed, WrongSecret, NoAgent, Broken,
}
