package agentd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// The host of an agent answers for its metrics at the agent's own listener, to who has the secret.
func TestMetricsAreServedToWhoHasTheSecret(t *testing.T) {
	dir, pg := t.TempDir(), clustertest.New(t, nil)
	ca := check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	pair := check.Must(ca.Issue("agent", "127.0.0.1"))(t)
	s := Settings{TLSCertFile: pair.CertFile, TLSKeyFile: pair.KeyFile, OpsListen: "127.0.0.1:0", LogLevel: "error"}
	a := &s.Agent
	a.Name, a.Pooler = "db1", pooler.DefaultSettings()
	a.CredentialsFile, s.Secret = filepath.Join(dir, "credentials.json"), "5eabc1d2e3f405162738495a6b7c8d9e"
	a.Versions, a.Languages = floors.Policy{Development: true}, floors.Policy{Development: true}
	check.Must(setup.Init(t.Context(), setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: a.CredentialsFile, Versions: a.Versions, Languages: a.Languages,
	}))(t)
	a.Listen = "127.0.0.1:" + strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t))
	a.PostgresHost, a.PostgresPort, a.DataDir, a.BackupDir = pg.Host(), pg.Port(), dir, filepath.Join(dir, "backups")
	a.PgDump = check.Must(toolchain.Find())(t).PgDump
	a.Pooler.Dir, a.Pooler.SocketDir = filepath.Join(dir, "pooler"), filepath.Join(dir, "socket")
	a.Pooler.TLSCertFile, a.Pooler.TLSKeyFile = pair.CertFile, pair.KeyFile

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- wiring.Run(ctx, Module(s)) }()
	defer func() { stop(); check.NoError(t, <-ended) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(check.Must(os.ReadFile(ca.CertFile()))(t))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	get := func(secret string) (int, string) {
		req := check.Must(http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.Listen+"/metrics", nil))(t)
		req.Header.Set("Authorization", "Bearer "+secret)
		answer, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		return answer.StatusCode, string(check.Must(io.ReadAll(answer.Body))(t))
	}
	status, text := 0, ""
	defer func() {
		if t.Failed() {
			t.Log(status, text)
		}
	}()
	check.Eventually(t, "the metrics do not say that the agent is in charge", func() bool {
		status, text = get(s.Secret)
		return status == http.StatusOK && strings.Contains(text, "\npgherd_agent_in_charge{server=\"db1\"} 1\n") &&
			strings.Contains(text, `pgherd_certificate_not_after_timestamp_seconds{of="pgbouncer",server="db1"}`) &&
			strings.Contains(text, `pgherd_agent_health_reason{code="pgbouncer_unreachable",server="db1"} 1`)
	})
	if status, text = get("another secret of 16"); status != http.StatusUnauthorized || text != "" {
		t.Errorf("without the secret: %d %s", status, text)
	}
}
