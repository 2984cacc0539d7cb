package logins_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/logins"
	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/relocate"
	"github.com/pgherd/pgherd/agent/settings"
	"github.com/pgherd/pgherd/agent/setup"
)

// poolerAPI is what all commands need of PgBouncer.
type poolerAPI interface {
	databases.Pooler
	logins.Pooler
	settings.Pooler
	relocate.Pooler
}

// executing carries out commands in the test's own process.
type executing struct {
	*ledger.Ledger
	*logins.Logins
}

// inProcess makes one that is in charge of a stack that has no agent, over a pooler and a port of PostgreSQL of the test's
// choice. It takes over from the one before it.
func inProcess(t testing.TB, s *agenttest.Stack, port int, wrap func(*pooler.Pooler) poolerAPI) executing {
	t.Helper()
	return inProcessLogging(t, s, port, wrap, zap.NewNop())
}

func inProcessLogging(
	t testing.TB, s *agenttest.Stack, port int, wrap func(*pooler.Pooler) poolerAPI, log *zap.Logger,
) executing {
	t.Helper()
	secrets := check.Must(setup.ReadCredentials(s.Config.CredentialsFile))(t)
	set := s.Config.Pooler
	set.ServerHost, set.ServerPort, set.MaintenanceDatabase = s.PG.Host(), s.PG.Port(), setup.MaintenanceDatabase
	set.AuthUser, set.AuthPassword = setup.PoolerLogin, secrets.PoolerPassword
	set.AdminUser, set.AdminPassword = setup.PoolerAdmin, secrets.PoolerAdminPassword
	p := pooler.New(set, nil)
	t.Cleanup(p.Close)
	server := ledger.Server{
		Host: "127.0.0.1", Port: port, Password: secrets.AgentPassword, Instance: agenttest.NewUUID(),
	}
	leader := check.Must(server.Lead(t.Context()))(t)
	t.Cleanup(leader.Release)
	l := check.Must(ledger.New(server, set, log))(t)
	t.Cleanup(l.Stop)
	rights := overlay.New(l)
	all := databases.New(l, wrap(p))
	settings.New(l, all, wrap(p), log)
	relocate.New(l, rights, all, wrap(p), nil)
	if err := p.Sync(t.Context(), l.PoolerState); err != nil && !errors.Is(err, pooler.ErrUnreachable) {
		t.Fatal(err)
	}
	return executing{l, logins.New(l, rights, wrap(p), log)}
}

// asItIs takes nothing out of a pooler.
func asItIs(p *pooler.Pooler) poolerAPI { return p }

// deaf leaves every client connected.
type deaf struct{ *pooler.Pooler }

func (deaf) Expel(context.Context, pooler.Who) (int, error) { return 0, nil }

// hasty ends the clients that are logged in, and does not wait for those in the middle of a log-in.
type hasty struct{ *pooler.Pooler }

func (p hasty) Expel(ctx context.Context, _ pooler.Who) (int, error) {
	clients, err := p.Clients(ctx)
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(clients))
	for i, c := range clients {
		ids[i] = c.ID
	}
	return len(ids), p.KillClients(ctx, ids...)
}

// flow changes a login's password. between is called where a flow that is wrong gives an attacker time; the others never call
// it.
type flow func(t testing.TB, ctx context.Context, l, next agenttest.LoginOf, between func()) error

// byExecutor is the agent's own flow.
func byExecutor(x executing) flow {
	return func(_ testing.TB, ctx context.Context, l, next agenttest.LoginOf, _ func()) error {
		_, err := x.Execute(ctx, l.Rotate(2, next))
		return err
	}
}

// naiveOn is what anyone would write first: the password is changed, and the sessions are ended.
func naiveOn(s *agenttest.Stack) flow {
	return func(_ testing.TB, ctx context.Context, l, next agenttest.LoginOf, between func()) error {
		if err := alter(s, ctx, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", l.Username, next.Verifier)); err != nil {
			return err
		}
		between()
		_, err := s.Super.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", l.Username)
		return err
	}
}

// alter sends a statement again for as long as another session changes the same row.
func alter(s *agenttest.Stack, ctx context.Context, statement string) error {
	for {
		_, err := s.Super.ExecContext(ctx, statement)
		if agenttest.SQLState(err) != "XX000" {
			return err
		}
	}
}

// survivalStack is a stack with PgBouncer, whose tests make executors of their own.
func survivalStack(t testing.TB) *agenttest.Stack {
	t.Helper()
	s := agenttest.Own(t)
	inProcess(t, s, s.PG.Port(), asItIs)
	s.StartBouncer(t.Context(), t)
	return s
}
