// Package server holds the record of a database server: one PostgreSQL, one PgBouncer and one agent.
package server

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Server is a registered database server. A database never moves from one to another by itself.
type Server struct {
	ID           id.ServerID `db:"id"`
	Name         string      `db:"name"`
	AgentURL     string      `db:"agent_url"`
	SealedSecret []byte      `db:"sealed_secret"` // the shared secret, encrypted; bound to SecretContext
	CA           string      `db:"ca"`            // PEM; empty means the system's roots
	PublicHost   string      `db:"public_host"`
	PublicPort   int         `db:"public_port"`
	Capacity     int         `db:"capacity"` // how many databases it takes
	Enabled      bool        `db:"enabled"`  // takes new databases
	CreatedAt    time.Time   `db:"created_at"`
}

// SecretContext binds the encrypted secret to this server.
func (s Server) SecretContext() string { return SecretContext(s.ID) }

// SecretContext binds an encrypted secret to a server.
func SecretContext(server id.ServerID) string { return "server/" + string(server) + "/secret" }
