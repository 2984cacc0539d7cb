package main_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// wrong is a set-up that cannot work: a command, and what is changed in settings that do work.
type wrong struct {
	what    string
	command string
	set     map[string]string
	// says is what the error must have: the setting, the host where there is one, and what to do.
	says []string
}

// TestWrongSetups starts the program with one thing wrong at a time. It must end with one line that says what to do, and show no
// secret.
func TestWrongSetups(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	list := append(append(s.ofControlPlane(), s.ofAgent()...), s.ofInit()...)
	for _, w := range list {
		t.Run(w.what, func(t *testing.T) { //nolint:paralleltest // A process after the other: they share files and ports.
			env := maps.Clone(s.good)
			maps.Copy(env, w.set)
			out, err := s.run(t.Context(), env, strings.Fields(w.command)...)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Fatalf("it must end with status 1: %v\n%s", err, out)
			}
			line := onlyError(t, out)
			for _, part := range w.says {
				if !strings.Contains(line, part) {
					t.Errorf("the error does not say %q: %s", part, line)
				}
			}
			for _, secret := range s.secrets {
				if strings.Contains(out, secret) {
					t.Errorf("the output has a secret: %s", out)
				}
			}
		})
	}
}

// onlyError is the error of a command: the one line that is neither a log line nor a warning.
func onlyError(t *testing.T, out string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "warning:") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "pgherd: ") {
		t.Fatalf("the error is not one line:\n%s", out)
	}
	return lines[0]
}

// setup is settings with which every command works, on one server for metadata and databases.
type setup struct {
	program, dir string
	server       *cluster.Postgres
	address      string // of the server
	taken        string // an address where somebody listens
	good         map[string]string
	secrets      []string
}

const metadataPassword, agentSecret = "m3tad4ta-p4ssw0rd", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

func newSetup(t *testing.T) *setup {
	t.Helper()
	tools := check.Must(toolchain.Find())(t)
	s := &setup{program: stacktest.Build(t, "pgherd"), dir: t.TempDir(), server: clustertest.New(t, nil)}
	s.address = s.server.Address()
	taken := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { taken.Close() })
	s.taken = taken.Addr().String()
	clustertest.Exec(t, s.server.URL("postgres"), "CREATE ROLE pgherd LOGIN PASSWORD '"+metadataPassword+"'",
		"CREATE DATABASE pgherd OWNER pgherd", "CREATE DATABASE empty OWNER pgherd", "CREATE DATABASE other OWNER pgherd",
		"CREATE DATABASE unreleased OWNER pgherd")
	clustertest.Exec(t, s.server.URL("unreleased"),
		"SET ROLE pgherd; CREATE TABLE goose_db_version AS SELECT 38::bigint AS version_id, true AS is_applied")
	ca := check.Must(cluster.OpenCA(s.file("ca")))(t)
	pair := check.Must(ca.Issue("host", "localhost", "127.0.0.1"))(t)
	for _, folder := range []string{"pooler", "sockets", "backups"} {
		check.NoError(t, os.Mkdir(s.file(folder), 0o700))
	}
	_, port, err := net.SplitHostPort(s.address)
	check.NoError(t, err)
	s.good = map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": s.dir,
		"PGHERD_METADATA_URL": s.metadataURL("pgherd", metadataPassword, s.address, "pgherd"),
		"PGHERD_KEYRING_FILE": s.file("keyring.json"),
		"PGHERD_LISTEN":       "127.0.0.1:0", "PGHERD_OPS_LISTEN": "127.0.0.1:0",
		"PGHERD_TLS_CERT_FILE": pair.CertFile, "PGHERD_TLS_KEY_FILE": pair.KeyFile,
		"PGHERD_AGENT_SECRET": agentSecret, "PGHERD_CREDENTIALS_FILE": s.file("credentials.json"),
		"PGHERD_POSTGRES_PORT": port, "PGHERD_DATA_DIR": s.dir, "PGHERD_BACKUP_DIR": s.file("backups"),
		"PGHERD_POOLER_DIR": s.file("pooler"), "PGHERD_POOLER_SOCKET_DIR": s.file("sockets"), "PGHERD_POOLER_PORT": "6432",
		"PGHERD_POOLER_TLS_CERT_FILE": pair.CertFile, "PGHERD_POOLER_TLS_KEY_FILE": pair.KeyFile,
		"PGHERD_SERVER_URL": s.server.URL("postgres"),
		"PGHERD_PG_DUMP":    tools.PgDump, "PGHERD_PGBOUNCER": tools.PgBouncer, "PGHERD_PGBACKREST": tools.PgBackRest,
		"PGHERD_ACCEPT_VERSIONS": strings.Join(check.Must(stack.Versions(t.Context(), tools))(t), ","),
	}
	if os.Geteuid() == 0 {
		s.good["PGHERD_POOLER_USER"] = "nobody"
	}
	s.secrets = []string{metadataPassword, agentSecret, s.server.Password()}
	for _, command := range []string{"migrate", "admin secrets init", "agent init"} {
		if out, err := s.run(t.Context(), s.good, strings.Fields(command)...); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	return s
}

func (s *setup) file(name string) string { return filepath.Join(s.dir, name) }

func (s *setup) metadataURL(login, password, address, database string) string {
	return "postgresql://" + login + ":" + password + "@" + address + "/" + database + "?sslmode=disable"
}

// patience ends a command that should have ended by itself.
const patience = 30 * time.Second

func (s *setup) run(ctx context.Context, env map[string]string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env = []string{}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// written makes a file with this text and mode.
func (s *setup) written(name, text string, mode os.FileMode) string {
	path := s.file(name)
	_ = os.WriteFile(path, []byte(text), mode) // a file that is not there fails its case
	_ = os.Chmod(path, mode)
	return path
}

// otherRing is the key ring of another installation.
func (s *setup) otherRing() string {
	env := maps.Clone(s.good)
	env["PGHERD_KEYRING_FILE"] = s.file("other.json")
	env["PGHERD_METADATA_URL"] = s.metadataURL("pgherd", metadataPassword, s.address, "other")
	for _, command := range []string{"migrate", "admin secrets init"} {
		_, _ = s.run(context.Background(), env, strings.Fields(command)...) // without the file, its case fails
	}
	return env["PGHERD_KEYRING_FILE"]
}

// closed is an address where nobody listens.
func closed() string {
	port, err := cluster.FreePort("127.0.0.1")
	if err != nil {
		port = 1
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// mustRead is empty for a file that cannot be read, which fails its case.
func mustRead(path string) []byte {
	text, _ := os.ReadFile(path)
	return text
}
