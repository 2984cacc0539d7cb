package cluster_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// pooled is a PgBouncer before the shared cluster, with TLS from a CA of its own; all its files belong to the caller.
type pooled struct {
	options  cluster.PoolerOptions
	ca       *cluster.CA
	password string
}

func newPooled(t *testing.T) pooled {
	t.Helper()
	pg := clustertest.Postgres(t)
	dir := filepath.Join(t.TempDir(), "closed")
	ca := check.Must(cluster.OpenCA(dir))(t)
	certificate := check.Must(ca.Issue("pooler", "localhost", "127.0.0.1"))(t)
	port := check.Must(cluster.FreePort("127.0.0.1"))(t)
	ini := filepath.Join(dir, "pgbouncer.ini")
	write(t, filepath.Join(dir, "users"), fmt.Sprintf("%q %q\n", cluster.Superuser, pg.Password()))
	write(t, ini, strings.Join([]string{
		"[databases]", fmt.Sprintf("postgres = host=127.0.0.1 port=%d", pg.Port()),
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", port), "unix_socket_dir =",
		"auth_type = scram-sha-256", "auth_file = " + filepath.Join(dir, "users"), "client_tls_sslmode = require",
		"admin_users = " + cluster.Superuser,
		"client_tls_key_file = " + certificate.KeyFile, "client_tls_cert_file = " + certificate.CertFile, "",
	}, "\n"))
	check.NoError(t, os.Chmod(dir, 0o700))
	return pooled{cluster.PoolerOptions{Ini: ini, Host: "127.0.0.1", Port: port}, ca, pg.Password()}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	check.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (p pooled) url(host string) string {
	query := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {p.ca.CertFile()}}
	return fmt.Sprintf("postgres://%s:%s@%s:%d/postgres?%s", cluster.Superuser, p.password, host, p.options.Port, query.Encode())
}

func TestPoolerServesTLSAndEndsAndStartsAgain(t *testing.T) {
	p := newPooled(t)
	pooler := check.Must(cluster.RunPooler(t.Context(), p.options))(t)
	for name, end := range map[string]func() error{
		"stop": func() error { return pooler.Stop(t.Context()) },
		"kill": pooler.Kill,
	} {
		one(t, p.url("localhost"), "SELECT 1")
		one(t, p.url("127.0.0.1"), "SELECT 1")
		check.NoError(t, end(), name)
		if _, err := ask(t.Context(), p.url("localhost"), "SELECT 1"); err == nil {
			t.Errorf("PgBouncer still answers after %s", name)
		}
		if err := pooler.Start(t.Context()); err != nil {
			t.Fatalf("start after %s: %v", name, err)
		}
	}
	check.NoError(t, pooler.Restart(t.Context()))
	one(t, p.url("localhost"), "SELECT 1")
	stopPooler(t, pooler)
}

func stopPooler(t *testing.T, pooler *cluster.Pooler) {
	t.Helper()
	check.NoError(t, pooler.Stop(t.Context()))
}

// TestAnotherPgBouncerIsNoticed runs the one that is found, and then claims to have chosen others.
func TestAnotherPgBouncerIsNoticed(t *testing.T) {
	p := newPooled(t)
	pooler := check.Must(cluster.RunPooler(t.Context(), p.options))(t)
	defer stopPooler(t, pooler)
	console := check.Must(sql.Open("postgres", strings.Replace(p.url("localhost"), "/postgres?", "/pgbouncer?", 1)))(t)
	defer console.Close()
	check.NoError(t, cluster.CheckPooler(t.Context(), console))
	dir := t.TempDir()
	for _, name := range []string{"pgbouncer", "pgbouncer-next"} {
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho PgBouncer 99.9.9\n"), 0o700))
		t.Setenv(toolchain.PoolerVariable, filepath.Join(dir, name))
		if err := cluster.CheckPooler(t.Context(), console); err == nil {
			t.Errorf("%s is said to run", name)
		}
	}
}

func TestEndOfContextStopsThePooler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pooler := check.Must(cluster.RunPooler(ctx, newPooled(t).options))(t)
	cancel()
	ends(t, pooler.Done(), "PgBouncer")
}

func TestPoolerErrorsAreClear(t *testing.T) {
	p := newPooled(t)
	taken := check.Must(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p.options.Port)))(t)
	var inUse *cluster.PortInUseError
	if _, err := cluster.RunPooler(t.Context(), p.options); !errors.As(err, &inUse) {
		t.Errorf("port in use: %v", err)
	}
	check.NoError(t, taken.Close())
	write(t, p.options.Ini, "[pgbouncer]\nno_such_setting = 1\n")
	if _, err := cluster.RunPooler(t.Context(), p.options); err == nil || !strings.Contains(err.Error(), "no_such_setting") &&
		!strings.Contains(err.Error(), "cannot load config file") {
		t.Errorf("wrong setting: %v", err)
	}
}

// TestClientProgramsWork runs psql and pg_dump as children of the caller's own user, over TLS, with their own libraries.
func TestClientProgramsWork(t *testing.T) {
	p := newPooled(t)
	pooler := check.Must(cluster.RunPooler(t.Context(), p.options))(t)
	defer stopPooler(t, pooler)
	tools := check.Must(toolchain.Find())(t)
	out, err := exec.Command(tools.Psql, "-XAtc", "SELECT ssl FROM pg_stat_ssl LIMIT 1", p.url("localhost")).CombinedOutput()
	if err != nil {
		t.Errorf("psql: %v: %s", err, out)
	}
	direct := clustertest.NewDatabase(t)
	clustertest.Exec(t, direct.URL, "CREATE TABLE dumped (what text)", "INSERT INTO dumped VALUES ('row')")
	out, err = exec.Command(tools.PgDump, direct.URL).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "COPY public.dumped") {
		t.Errorf("pg_dump: %v: %s", err, out)
	}
}
