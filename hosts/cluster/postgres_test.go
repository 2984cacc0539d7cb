package cluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func TestClusterIsAsDocumented(t *testing.T) {
	major := strconv.Itoa(check.Must(toolchain.Find())(t).Major)
	url := clustertest.NewDatabase(t).URL
	for query, want := range map[string]string{
		"SHOW server_version_num":                major,
		"SHOW server_encoding":                   "UTF8",
		"SHOW password_encryption":               "scram-sha-256",
		"SHOW listen_addresses":                  "127.0.0.1",
		"SHOW reserved_connections":              "10",
		"SELECT current_setting('is_superuser')": "on",
		"SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules": "scram-sha-256",
		"SELECT datcollate FROM pg_database WHERE datname = 'template1'":      "C",
	} {
		if got := one(t, url, query); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", query, got, want)
		}
	}
}

func TestWrongPasswordIsRefused(t *testing.T) {
	pg := clustertest.Postgres(t)
	if _, err := ask(t.Context(), pg.URLFor(cluster.Superuser, "wrong", "postgres"), "SELECT 1"); err == nil {
		t.Error("a wrong password was accepted")
	}
}

func TestDataOutlivesEveryEnd(t *testing.T) {
	pg := clustertest.New(t, map[string]string{"max_connections": "37"})
	clustertest.Exec(t, pg.URL("postgres"), "CREATE TABLE kept (what text)")
	port, ends := pg.Port(), map[string]func() error{
		"fast":      func() error { return pg.Stop(t.Context(), cluster.Fast) },
		"immediate": func() error { return pg.Stop(t.Context(), cluster.Immediate) },
		"kill":      pg.Kill,
	}
	for name, end := range ends {
		clustertest.Exec(t, pg.URL("postgres"), "INSERT INTO kept VALUES ('"+name+"')")
		check.NoError(t, end(), name)
		if err := pg.Start(t.Context()); err != nil {
			t.Fatalf("start after %s: %v", name, err)
		}
	}
	if got := one(t, pg.URL("postgres"), "SELECT count(*) FROM kept"); got != "3" {
		t.Errorf("%s of 3 rows are left", got)
	}
	if got := one(t, pg.URL("postgres"), "SHOW max_connections"); got != "37" {
		t.Errorf("max_connections is %s after the restarts, want 37", got)
	}
	if pg.Port() != port {
		t.Errorf("the port went from %d to %d", port, pg.Port())
	}
}

func TestDirKeepsItsClusterForTheNextRun(t *testing.T) {
	o := cluster.Options{Dir: t.TempDir(), Fast: true}
	first := check.Must(cluster.Run(t.Context(), o))(t)
	clustertest.Exec(t, first.URL("postgres"), "CREATE TABLE kept ()")
	stop(t, first)
	second := check.Must(cluster.Run(t.Context(), o))(t)
	defer stop(t, second)
	if got := one(t, second.URL("postgres"), "SELECT count(*) FROM kept"); got != "0" {
		t.Errorf("count is %s", got)
	}
	if first.Password() != second.Password() || len(second.Password()) < 20 {
		t.Error("the superuser's password was not kept")
	}
	if info, err := os.Stat(filepath.Join(o.Dir, "superuser.password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v %v", info, err)
	}
}

func TestEndOfContextStopsTheCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	pg := check.Must(cluster.Run(ctx, cluster.Options{Dir: dir, Fast: true}))(t)
	cancel()
	ends(t, pg.Done(), "PostgreSQL")
	log, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
	if err != nil || !strings.Contains(string(log), "database system is shut down") {
		t.Errorf("no clean end in the log (%v):\n%s", err, log)
	}
}

func TestPortInUseIsOneClearError(t *testing.T) {
	taken := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "cluster")
	_, err := cluster.Run(t.Context(), cluster.Options{Dir: dir, Port: taken.Addr().(*net.TCPAddr).Port, Fast: true})
	var inUse *cluster.PortInUseError
	if !errors.As(err, &inUse) || inUse.Address != taken.Addr().String() || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a start that was refused left its folder: %v", err)
	}
}

func TestWrongSettingIsOneClearError(t *testing.T) {
	o := cluster.Options{Dir: t.TempDir(), Fast: true, Settings: map[string]string{"max_connections": "many"}}
	_, err := cluster.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "max_connections") && !strings.Contains(err.Error(), "configuration file") {
		t.Errorf("error is %v", err)
	}
	if _, again := cluster.Run(t.Context(), o); again == nil || again.Error() != err.Error() {
		t.Errorf("the same failure has another text: %v", again)
	}
}

func TestFrozenClusterHangsUntilThawed(t *testing.T) {
	pg := clustertest.New(t, nil)
	check.NoError(t, pg.Freeze())
	connection, err := net.Dial("tcp", pg.Address())
	if err != nil {
		t.Fatalf("a frozen cluster refuses: %v", err)
	}
	defer connection.Close()
	check.Must(connection.Write(sslRequest))(t)
	if answered(t, connection, 300*time.Millisecond) {
		t.Error("a frozen cluster answered")
	}
	check.NoError(t, pg.Thaw())
	if !answered(t, connection, 10*time.Second) {
		t.Error("a thawed cluster does not answer")
	}
}

// sslRequest is the protocol's first question, which every server answers with one byte.
var sslRequest = []byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}

func answered(t *testing.T, connection net.Conn, within time.Duration) bool {
	t.Helper()
	check.NoError(t, connection.SetReadDeadline(time.Now().Add(within)))
	_, err := connection.Read(make([]byte, 1))
	return err == nil
}

func TestSecondStartIsRefused(t *testing.T) {
	if err := clustertest.Postgres(t).Start(t.Context()); err == nil {
		t.Error("a running cluster was started again")
	}
}
