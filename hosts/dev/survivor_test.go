package dev_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// survivor is a development host whose parts are killed, with a customer's database in it.
type survivor struct {
	*developer
	facts map[string]string
	url   string // of the customer's database, through the pooler
	id    id.DatabaseID
	seen  int // of the terminal
}

func newSurvivor(t *testing.T) *survivor {
	t.Helper()
	root := check.Must(toolchain.Root())(t)
	s := &survivor{developer: newDeveloper(t, root, stacktest.Build(t, "pgherd"))}
	s.begin(t)
	return s
}

// begin starts the host, and makes the database.
func (s *survivor) begin(t *testing.T) {
	t.Helper()
	s.start()
	s.facts = map[string]string{}
	env := check.Must(os.ReadFile(s.state("env")))(t)
	for line := range strings.Lines(string(env)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		s.facts[name] = strings.Trim(value, "'")
	}
	s.id, s.url = s.create(t, "shop")
}

func (s *survivor) state(path string) string { return filepath.Join(s.dir, ".pgherd/dev", path) }

// within repeats something until it works, for the ten seconds that a developer may have to wait.
func (s *survivor) within(t *testing.T, what string, fn func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		err := fn(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v\n%s", what, err, s.out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// says waits until the terminal shows a text, after the one before.
func (s *survivor) says(t *testing.T, text string) {
	t.Helper()
	s.within(t, "the terminal", func(context.Context) error {
		shown := s.out.String()[s.seen:]
		at := strings.Index(shown, text)
		if at < 0 {
			return fmt.Errorf("does not say %q", text)
		}
		s.seen += at + len(text)
		return nil
	})
}

// serves checks that the customer gets in and that the host is ready.
func (s *survivor) serves(t *testing.T) {
	t.Helper()
	s.within(t, "the customer", func(ctx context.Context) error {
		db, err := sql.Open("postgres", s.url)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
	})
	s.within(t, "/readyz", func(ctx context.Context) error {
		return answers(ctx, s.facts["PGHERD_OPS_URL"]+"/readyz")
	})
}

// answers asks a URL, which must answer well.
func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		err = errors.New(response.Status)
	}
	return err
}

// api is what the customer calls.
func (s *survivor) api(t *testing.T) *apiclient.Client {
	t.Helper()
	cfg := apiclient.Config{URL: s.facts["PGHERD_BASE_URL"], Key: s.facts["PGHERD_API_KEY"], Attempts: 1}
	return check.Must(apiclient.New(cfg))(t)
}

func (s *survivor) create(t *testing.T, name string) (of id.DatabaseID, url string) {
	t.Helper()
	made, err := s.api(t).Databases.Create(t.Context(), wire.CreateDatabase{Name: name, DisplayName: name})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return made.ID, made.ConnectionString + "&sslrootcert=" + s.facts["PGHERD_CA_FILE"]
}

// backsUp makes a backup, which takes the API, the batch host and the agent.
func (s *survivor) backsUp(t *testing.T) {
	t.Helper()
	begun, err := s.api(t).Backups.Start(t.Context(), s.id)
	if err != nil {
		t.Fatalf("backup: %v", err)
	}
	s.within(t, "backup", func(ctx context.Context) error {
		o, err := s.api(t).Operations.Get(ctx, begun.Operation.ID)
		if err == nil && o.Status != operation.Succeeded {
			err = fmt.Errorf("it is %s", o.Status)
		}
		return err
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	check.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// killPooler kills PgBouncer, where it runs: the process that has its file in the command line.
func (s *survivor) killPooler(t *testing.T) {
	t.Helper()
	lines := check.Must(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(line), s.state("pooler/pgbouncer.ini")) {
			continue
		}
		pid := check.Must(strconv.Atoi(filepath.Base(filepath.Dir(file))))(t)
		kill(t, pid)
	}
}

func (s *survivor) postmaster(t *testing.T) int {
	t.Helper()
	text := check.Must(os.ReadFile(s.state("postgres/data/postmaster.pid")))(t)
	first, _, _ := strings.Cut(string(text), "\n")
	return check.Must(strconv.Atoi(first))(t)
}

// usurp kills PgBouncer and listens in its place. If it was started at once and came first, it is killed again: then there is a
// pause.
func (s *survivor) usurp(t *testing.T) (taken net.Listener) {
	t.Helper()
	s.within(t, "the pooler's port", func(context.Context) (err error) {
		s.killPooler(t)
		taken, err = net.Listen("tcp", "127.0.0.1:"+strings.TrimPrefix(s.flags[4], "--pooler-port="))
		return err
	})
	return taken
}
