package agent_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/languages"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/agent/versions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
	"github.com/pgherd/pgherd/ports"
)

// The real agent on a real PostgreSQL and PgBouncer, reached over HTTPS as the control plane reaches it.
func TestRealAgent(t *testing.T) {
	t.Parallel()
	s := startReal(t)
	// max_connections, and of these those kept for superusers, for the agent and for questions of PgBouncer's
	known, err := ports.Ask(t.Context(), s.Agent, command.AskCapabilities{})
	if err != nil || known.Connections != 250-3-10-4 {
		t.Errorf("the server has %d connections for databases (%v)", known.Connections, err)
	}
	conformance.Agent(t, 8, func(*testing.T) conformance.Stand { return s })
}

func startReal(t *testing.T) conformance.Stand {
	t.Helper()
	dir := t.TempDir()
	pg := clustertest.New(t, nil)
	ca := must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	config := realConfig(t, dir, ca, pg)
	_, err := setup.Init(t.Context(), setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: config.CredentialsFile, Versions: config.Versions, Languages: config.Languages,
	})
	noError(t, err)
	url := runAgent(t, config)

	box := fakebox.New()
	record := server.Server{ID: "33333333-3333-4333-8333-333333333333", AgentURL: url, CA: read(t, ca.CertFile())}
	record.SealedSecret = must(box.Seal([]byte(agentSecret), record.SecretContext()))(t)
	fleet := agentclient.New(box, agentclient.Options{})
	t.Cleanup(fleet.Close)
	client := must(fleet.Agent(record))(t)
	return conformance.Stand{Agent: client, Server: realServer{t: t, pg: pg, ca: ca.CertFile(), port: config.Pooler.ListenPort}}
}

// agentSecret is what the agent takes.
var agentSecret = rand.Text()

func realConfig(t *testing.T, dir string, ca *cluster.CA, pg *cluster.Postgres) agent.Config {
	t.Helper()
	tools := must(toolchain.Find())(t)
	own := must(ca.Issue("agent", "127.0.0.1"))(t)
	public := must(ca.Issue("pooler", "127.0.0.1"))(t)
	port, err := cluster.FreePort("127.0.0.1")
	noError(t, err)
	settings := pooler.DefaultSettings()
	settings.Dir, settings.ListenPort = filepath.Join(dir, "pooler"), port
	settings.TLSCertFile, settings.TLSKeyFile = public.CertFile, public.KeyFile
	settings.SocketDir = must(cluster.SocketDir(filepath.Join(dir, "sockets")))(t)
	return agent.Config{
		Certificate:     must(certfile.Open("agent", own.CertFile, own.KeyFile))(t).Certificate,
		Secrets:         func() []string { return []string{agentSecret} },
		CredentialsFile: filepath.Join(dir, "credentials.json"),
		PostgresHost:    pg.Host(), PostgresPort: pg.Port(), Pooler: settings,
		BackupDir: filepath.Join(dir, "backups"), BackupReserve: 1, PgDump: tools.PgDump, DataDir: dir, Version: "test",
		Versions: versions.Policy{Development: true}, Languages: languages.Policy{Development: true},
	}
}

// runAgent starts agent and PgBouncer, in the order that they need, and returns the agent's URL.
func runAgent(t *testing.T, c agent.Config) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	a := must(agent.New(c, agent.Deps{Listener: listener}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended: %v", err)
		}
	})
	select {
	case <-a.Started():
	case <-time.After(check.Patience):
		t.Fatal("the agent does not take charge")
	}
	p, err := cluster.RunPooler(context.Background(), cluster.PoolerOptions{
		Ini: pooler.ConfigFile(c.Pooler.Dir), Host: "127.0.0.1", Port: c.Pooler.ListenPort,
	})
	noError(t, err)
	t.Cleanup(func() { noError(t, p.Stop(context.Background())) })
	checkPooler(t, c)
	return "https://" + listener.Addr().String()
}

func checkPooler(t *testing.T, c agent.Config) {
	t.Helper()
	secrets := must(setup.ReadCredentials(c.CredentialsFile))(t)
	console, err := sql.Open("postgres", fmt.Sprintf("host='%s' port=%d user='%s' password='%s' dbname=pgbouncer sslmode=disable",
		c.Pooler.SocketDir, c.Pooler.ListenPort, setup.PoolerAdmin, secrets.PoolerAdminPassword))
	noError(t, err)
	defer console.Close()
	noError(t, cluster.CheckPooler(t.Context(), console))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := must(os.ReadFile(path))(t)
	return string(text)
}

var noError = check.NoError

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

var loopback = netip.MustParseAddr("127.0.0.1")
