package databases_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// A database that an operation made and that was undone may be made again, as by a move that is ordered again: the allowlist of
// the same generation is that of the new one, too.
func TestADatabaseThatIsMadeAgainIsToldAnew(t *testing.T) {
	s := agenttest.Shared(t)
	w := agenttest.Want(database.Managed)
	const network, networks = "198.51.100.0/24", "SELECT networks::text FROM ledger.database WHERE id = $1"
	for range 2 {
		w.Operation = agenttest.NewUUID()
		s.Done(t, closed(w))
		s.Done(t, w.Allowlist(1, network))
		if got := s.One(t, networks, w.ID); got != "{"+network+"}" {
			t.Errorf("the allowlist is %s", got)
		}
		s.Done(t, agenttest.Closing(w.Operation))
	}
	s.NoTrace(t, w)
}

// closed makes the database for an operation that is to fill it.
func closed(w agenttest.Wanted) protocol.Command {
	c := command.EnsureDatabase{
		DatabaseID: w.DatabaseID(), Name: w.Name, RoleModel: w.Model, ConnectionCap: w.Cap, Closed: true,
		BackupKey: agenttest.BackupKey,
	}
	for _, l := range w.Model.Logins() {
		c.Logins = append(c.Logins, command.Login{Login: l, Username: w.Names().Of(l), Verifier: w.Verifiers[l]})
	}
	return agenttest.Told(w.Operation, 1, c)
}
