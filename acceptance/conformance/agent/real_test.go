package agent_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/hosts/toolchain"
	"github.com/pgherd/pgherd/ports"
)

// The real agent on a real PostgreSQL and PgBouncer, reached over HTTPS as the control plane reaches it.
func TestRealAgent(t *testing.T) {
	t.Parallel()
	s := startReal(t, agenttest.Own(t))
	// max_connections, and of these those kept for superusers, for the agent and for questions of PgBouncer's
	known, err := ports.Ask(t.Context(), s.Agent, command.AskCapabilities{})
	if err != nil || known.Connections != 250-3-10-4 {
		t.Errorf("the server has %d connections for databases (%v)", known.Connections, err)
	}
	conformance.Agent(t, 8, func(*testing.T) conformance.Stand { return s })
}

func TestRealArchive(t *testing.T) {
	t.Parallel()
	stack := agenttest.Archived(t)
	s := startReal(t, stack)
	stack.SendArchiveKey(t)
	conformance.Archive(t, 6, func(*testing.T) conformance.Stand { return s })
}

func TestRealArchiveKeys(t *testing.T) {
	t.Parallel()
	s, tools := agenttest.Own(t), must(toolchain.Find())(t)
	s.Config.Archive = &agent.Archive{
		PgBackRest: tools.PgBackRest, Postgres: tools.Postgres, Socket: filepath.Join(t.TempDir(), "push"),
	}
	conformance.ArchiveKeys(t, startReal(t, s))
}

func startReal(t *testing.T, s *agenttest.Stack) conformance.Stand {
	t.Helper()
	s.Start(t)
	box := fakebox.New()
	record := server.Server{ID: "33333333-3333-4333-8333-333333333333", AgentURL: "https://" + s.Config.Listen, CA: s.CA(t)}
	record.SealedSecret = must(box.Seal([]byte(agenttest.Secret), record.SecretContext()))(t)
	fleet := agentclient.New(box, agentclient.Options{})
	t.Cleanup(fleet.Close)
	return conformance.Stand{Agent: must(fleet.Agent(record))(t), Server: realServer{t, s}}
}

var noError = check.NoError

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

var loopback = netip.MustParseAddr("127.0.0.1")
