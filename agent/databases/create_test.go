package databases_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

func TestWhatIsNotOursIsNeverTakenOrDropped(t *testing.T) {
	s := agenttest.Shared(t)
	for what, make := range map[string]func(w agenttest.Wanted) (create, drop string){
		"role": func(w agenttest.Wanted) (string, string) {
			return `CREATE ROLE "` + w.Name + `"`, `DROP ROLE "` + w.Name + `"`
		},
		"database": func(w agenttest.Wanted) (string, string) {
			return `CREATE DATABASE "` + w.Name + `"`, `DROP DATABASE "` + w.Name + `"`
		},
		"role of another kind": func(w agenttest.Wanted) (string, string) {
			return "CREATE ROLE " + w.Names().Holder, "DROP ROLE " + w.Names().Holder
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := agenttest.Want(database.Managed)
			create, drop := make(w)
			check.Must(s.Super.Exec(create))(t)
			s.RefusedFor(t, command.ReasonNameTaken, w.Create())
			s.Done(t, agenttest.Closing(w.Operation))
			check.Must(s.Super.Exec(drop))(t) // it is still there
			s.NoTrace(t, w)
		})
	}
}

// What is about one field of a payload is tested in core/command, what is no command in server.
func TestMalformedCommandsAreInvalid(t *testing.T) {
	s := agenttest.Shared(t)
	for _, spoil := range []func(c *protocol.Command){
		func(c *protocol.Command) { c.PayloadHash = protocol.Hash(nil) },
		func(c *protocol.Command) { c.OperationID = "x" },
		func(c *protocol.Command) { c.OperationID = "" },
		func(c *protocol.Command) { c.Resource = databaseResource(agenttest.NewUUID()) },
		func(c *protocol.Command) { c.Secrets = nil },
		func(c *protocol.Command) { c.Kind = "database.explode" },
		func(c *protocol.Command) {
			*c = agenttest.Want(database.Managed).Additional(1, role.ReadOnly).Prepare(1)
			c.Step = "freeze"
		},
		func(c *protocol.Command) {
			c.Payload = append([]byte(`{"reason":"x",`), c.Payload[1:]...)
			c.PayloadHash = protocol.Hash(c.Payload)
		},
	} {
		c := agenttest.Want(database.Managed).Create()
		spoil(&c)
		s.RefusedFor(t, command.ReasonInvalid, c)
	}
}
