// Package server holds the record of a database server: one PostgreSQL, one PgBouncer and one agent.
package server

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Server is a registered database server.
type Server struct {
	ID           id.ServerID `db:"id"`
	Name         string      `db:"name"`
	AgentURL     string      `db:"agent_url"`
	SealedSecret []byte      `db:"sealed_secret"` // the shared secret, encrypted; bound to SecretContext
	CA           string      `db:"ca"`            // PEM, of one authority or of several; empty means the system's roots
	PublicHost   string      `db:"public_host"`
	PublicPort   int         `db:"public_port"`
	Capacity     int         `db:"capacity"`    // most databases that it holds
	Connections  int         `db:"connections"` // most connections that its databases may have together; 0: not counted
	Enabled      bool        `db:"enabled"`     // new databases are placed on it
	CreatedAt    time.Time   `db:"created_at"`

	// Installation tells the server from every other one, by whichever address its agent is reached; empty: the agent has not said
	// it yet.
	Installation string `db:"installation"`

	// Storage is where its agent keeps backups, as the agent has last said: what keys of objects begin with, or a folder. Whoever
	// makes its databases anew once it is gone looks there.
	Storage string `db:"storage"`

	// PostgresVersion is its major version of PostgreSQL, which stays; 0: the agent has not said it yet, and no new database is
	// placed on it.
	PostgresVersion int `db:"postgres_version"`

	// PublicCA are the certificates in PEM by which whoever comes to its pooler can know it, as the agent has last said: those of
	// the pooler's own certificate file. Empty: it has not said them.
	PublicCA string `db:"public_ca"`

	// AvoidedUntil is until when other servers get the new databases, because this one could not be reached; nil: not avoided.
	AvoidedUntil *time.Time `db:"avoided_until"`

	// SealedArchiveKey is the passphrase of the archive that its agent may keep, encrypted; bound to ArchiveContext. It is made with
	// the server, and stays: without it, what is in the archive is lost.
	SealedArchiveKey []byte `db:"sealed_archive_key"`

	// AnsweredAt is when its agent last answered a batch host, to AnswerNoted; AwaySince is since when it does not, nil while it
	// does.
	AnsweredAt *time.Time `db:"answered_at"`
	AwaySince  *time.Time `db:"away_since"`
}

// Answer is what an agent says of its server that is stored.
type Answer struct {
	Storage         string
	PostgresVersion int
	PublicCA        string
}

// AnswerNoted is how often it is stored that an agent still answers.
const AnswerNoted = time.Minute

// AnswerCounts is how long a stored answer counts: by then a batch host has stored another one, or that the agent is away.
const AnswerCounts = 2 * AnswerNoted

// HeardFrom reports whether the agent answers batch hosts, according to what they have stored.
func (s Server) HeardFrom(now time.Time) bool {
	return s.AwaySince == nil && s.AnsweredAt != nil && now.Sub(*s.AnsweredAt) < AnswerCounts
}

// AvoidedFor is how long new databases go to other servers after one could not be reached.
const AvoidedFor = 30 * time.Second

// Avoided reports whether other servers with room come first.
func (s Server) Avoided(now time.Time) bool {
	return s.AvoidedUntil != nil && now.Before(*s.AvoidedUntil)
}

// SecretContext binds the encrypted secret to this server.
func (s Server) SecretContext() string { return SecretContext(s.ID) }

// SecretContext binds an encrypted secret to a server.
func SecretContext(server id.ServerID) string { return "server/" + string(server) + "/secret" }

// ArchiveContext binds the encrypted passphrase of the archive to this server.
func (s Server) ArchiveContext() string { return "server/" + string(s.ID) + "/archive" }

// mostConnections is the highest max_connections that PostgreSQL takes.
const mostConnections = 262_143

// Validate checks an operator's input: an https agent URL of host and port only, no CA or what CheckAuthorities takes, a public
// host and port, a capacity of at least one database, and a number of connections that PostgreSQL can have.
func (s Server) Validate() error {
	switch {
	case !validAgentURL(s.AgentURL):
		return fault.Invalid("agentUrl", "must be https://host:port")
	case !publicHost.MatchString(s.PublicHost):
		return fault.Invalid("publicHost", "must be a host name or an IPv4 address")
	case s.PublicPort < 1 || s.PublicPort > 65535:
		return fault.Invalid("publicPort", "must be 1-65535")
	case s.Capacity < 1:
		return fault.Invalid("capacity", "must be at least 1")
	case s.Connections < 0 || s.Connections > mostConnections:
		return fault.Invalid("connections", "must be 0-%d; 0 means that they are not counted", mostConnections)
	case s.CA == "":
		return nil
	}
	if err := CheckAuthorities(s.CA); err != nil {
		return fault.Invalid("agentCaFile", "%s", err)
	}
	return nil
}

var publicHost = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z.-]{0,251}[0-9A-Za-z])?$`)

func validAgentURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || !ascii.Visible(text) {
		return false
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && err != nil {
		return false
	}
	return strings.TrimSuffix(text, "/") == "https://"+u.Host
}
