package dev

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// Settings of the development host. Everything listens on loopback.
type Settings struct {
	StateDir string
	APIPort  int
	// DashboardPort is that of the dashboard, which speaks TLS.
	DashboardPort int
	OpsPort       int
	AgentPort     int
	PoolerPort    int
	PostgresPort  int
	// Servers is how many database servers there are. Each further one has the next ports.
	Servers  int
	LogLevel string
	// Blobs is where backups are kept; nil: in the folder of the state.
	Blobs blob.Store
	// Objects is how the object store of Blobs is reached, in which the archive is too; nil: both are in the folder of the state.
	Objects *s3.Config
	// AllowPrivateWebhooks lets webhooks reach private addresses; WebhookCAFile names a CA that receivers' certificates may have.
	AllowPrivateWebhooks bool
	WebhookCAFile        string

	of string // which server's, in words; empty: the first one's
}

// mostServers is enough to see databases move.
const mostServers = 4

// server returns the settings of one of the database servers, the first being 1: a further one has a folder of its own, and keeps
// its backups there.
func (s Settings) server(n int) Settings {
	if n == 1 {
		return s
	}
	s.of = fmt.Sprintf(" of server %d", n)
	s.StateDir = s.path(fmt.Sprintf("server-%d", n))
	s.AgentPort, s.PoolerPort, s.PostgresPort = s.AgentPort+n-1, s.PoolerPort+n-1, s.PostgresPort+n-1
	s.Blobs, s.Objects = nil, nil
	return s
}

const loopback = "127.0.0.1"

// publicHost is what customers connect to: the name in the pooler's certificate.
const publicHost = "localhost"

func (s Settings) path(parts ...string) string {
	return filepath.Join(append([]string{s.StateDir}, parts...)...)
}

func (s Settings) envFile() string         { return s.path("env") }
func (s Settings) seedFile() string        { return s.path("seed.json") }
func (s Settings) agentSecretFile() string { return s.path("agent-secret") }
func (s Settings) keyringFile() string     { return s.path("keyring.json") }
func (s Settings) credentialsFile() string { return s.path("agent-credentials.json") }
func (s Settings) mailbox() string         { return s.path("mailbox") }
func (s Settings) logFile() string         { return s.path("log") }
func (s Settings) poolerLog() string       { return s.path("pooler", "pgbouncer.log") }

func (s Settings) apiURL() string { return "http://" + address(s.APIPort) }
func (s Settings) dashboardURL() string {
	return "https://" + net.JoinHostPort(publicHost, strconv.Itoa(s.DashboardPort))
}
func (s Settings) opsURL() string   { return "http://" + address(s.OpsPort) }
func (s Settings) agentURL() string { return "https://" + address(s.AgentPort) }

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// checkPorts refuses to start anything while one of the ports is in use, in one line that says what to do.
func (s Settings) checkPorts() error {
	if s.Servers < 1 || s.Servers > mostServers {
		return fmt.Errorf("--servers must be between 1 and %d", mostServers)
	}
	type named struct {
		flag string
		port int
	}
	all := []named{{"api-port", s.APIPort}, {"dashboard-port", s.DashboardPort}, {"ops-port", s.OpsPort}}
	for n := 1; n <= s.Servers; n++ {
		of := s.server(n)
		all = append(all, named{"agent-port", of.AgentPort}, named{"pooler-port", of.PoolerPort},
			named{"postgres-port", of.PostgresPort})
	}
	seen := map[int]string{}
	for _, p := range all {
		if other, twice := seen[p.port]; twice {
			return fmt.Errorf("--%s and --%s are both %d", other, p.flag, p.port)
		}
		seen[p.port] = p.flag
		if err := cluster.CheckPort(loopback, p.port); err != nil {
			return fmt.Errorf("%w; choose another with --%s", err, p.flag)
		}
	}
	return nil
}
