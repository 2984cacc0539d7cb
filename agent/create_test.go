package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

func TestWhatIsNotOursIsNeverTakenOrDropped(t *testing.T) {
	s := realStack(t)
	for what, make := range map[string]func(w wanted) (create, drop string){
		"role": func(w wanted) (string, string) { return `CREATE ROLE "` + w.name + `"`, `DROP ROLE "` + w.name + `"` },
		"database": func(w wanted) (string, string) {
			return `CREATE DATABASE "` + w.name + `"`, `DROP DATABASE "` + w.name + `"`
		},
		"role of another kind": func(w wanted) (string, string) {
			return "CREATE ROLE " + w.names().Holder, "DROP ROLE " + w.names().Holder
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := want(database.Managed)
			create, drop := make(w)
			check.Must(s.super.Exec(create))(t)
			s.refusedFor(t, command.ReasonNameTaken, w.create())
			s.done(t, closing(w.operation))
			check.Must(s.super.Exec(drop))(t) // it is still there
			s.noTrace(t, w)
		})
	}
}

// What is about one field of a payload is tested in core/command, what is no command in server.
func TestMalformedCommandsAreInvalid(t *testing.T) {
	s := realStack(t)
	for _, spoil := range []func(c *protocol.Command){
		func(c *protocol.Command) { c.PayloadHash = protocol.Hash(nil) },
		func(c *protocol.Command) { c.OperationID = "x" },
		func(c *protocol.Command) { c.OperationID = "" },
		func(c *protocol.Command) { c.Resource = databaseResource(newUUID()) },
		func(c *protocol.Command) { c.Secrets = nil },
		func(c *protocol.Command) { c.Kind = "database.explode" },
		func(c *protocol.Command) {
			*c = want(database.Managed).additional(1, role.ReadOnly).prepare(1)
			c.Step = "freeze"
		},
		func(c *protocol.Command) {
			c.Payload = append([]byte(`{"reason":"x",`), c.Payload[1:]...)
			c.PayloadHash = protocol.Hash(c.Payload)
		},
	} {
		c := want(database.Managed).create()
		spoil(&c)
		s.refusedFor(t, command.ReasonInvalid, c)
	}
}

// noTrace checks that nothing of a database stands: in PostgreSQL or in our tables.
func (s *stack) noTrace(t testing.TB, w wanted) {
	t.Helper()
	n := w.names()
	for what, query := range map[string]string{
		"roles":     `SELECT count(*) FROM pg_roles WHERE rolname IN ($1, $2, $3, $4, $5, $6) AND $7 <> ''`,
		"databases": `SELECT count(*) FROM pg_database WHERE datname IN ($1, $7) AND '' NOT IN ($2, $3, $4, $5, $6)`,
		"ledger": `SELECT (SELECT count(*) FROM ledger.database WHERE name = $1) +
			(SELECT count(*) FROM ledger.role WHERE name IN ($1, $2, $3, $4, $5, $6)) +
			(SELECT count(*) FROM pooler.gate WHERE login IN ($1, $2, $3)) WHERE $7 <> ''`,
	} {
		temporary := "tmp_" + compact(w.operation)
		if got := s.one(t, query, n.Owner, n.Runtime, n.Readonly, n.Holder, n.ReadGroup, n.WriteGroup, temporary); got != "0" {
			t.Errorf("%s %s left of %s", got, what, w.name)
		}
	}
}
