package agenttest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Archived is a stack of the test's own that keeps an archive, without an agent.
func Archived(t testing.TB) *Stack {
	t.Helper()
	if !becomes {
		t.Fatal("TestMain must call agenttest.Become: PostgreSQL would run all tests")
	}
	dir := t.TempDir()
	check.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // the programs' user goes through
	s := New(t, clustertest.New(t, map[string]string{
		"archive_mode": "on", "wal_level": "replica", "full_page_writes": "on",
	}), dir)
	tools := check.Must(toolchain.Find())(t)
	sockets := check.Must(cluster.SocketDir(filepath.Join(dir, "archive")))(t)
	s.Config.Archive = &agent.Archive{
		PgBackRest: tools.PgBackRest, Postgres: tools.Postgres, Socket: filepath.Join(sockets, "push"),
	}
	program := check.Must(cluster.Reachable(check.Must(os.Executable())(t), sockets))(t)
	s.prepare(t, &setup.Archive{
		Command: setup.ArchiveCommand(program, s.Config.Archive.Socket), Timeout: time.Second,
	})
	return s
}

// ArchiveKey is the passphrase of the archives of tests.
var ArchiveKey = strings.Repeat("k", command.ArchiveKeyLength)

// SendArchiveKey does what the control plane does first.
func (s *Stack) SendArchiveKey(t testing.TB) {
	t.Helper()
	status, text, err := s.Request(http.MethodPost, "/v1/archive/key", []byte(`{"key":"`+ArchiveKey+`"}`))
	if err != nil || status != http.StatusNoContent {
		t.Fatal(status, string(text), err)
	}
}

// Window is what the agent says of a database.
func (s *Stack) Window(t testing.TB, w Wanted) (found command.RecoverableTime) {
	t.Helper()
	status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/recovery-window", nil)
	if err != nil || status != http.StatusOK {
		t.Fatal(status, string(text), err)
	}
	check.NoError(t, json.Unmarshal(text, &found))
	return found
}
