// Package stacktest gives a test a stack of its own, and ends it with the test.
package stacktest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Start runs a stack of pgherd built with the given tags. It sets Dir, Binary and TemplateDir of the options. If the test fails,
// logs are shown.
func Start(ctx context.Context, t testing.TB, o stack.Options, tags ...string) *stack.Stack {
	t.Helper()
	o.Dir, o.Binary, o.TemplateDir = Dir(t), Build(t, "pgherd", tags...), clustertest.TemplateDir()
	s, err := stack.Start(ctx, o)
	return started(t, s, err, o.Dir)
}

// Beside runs another database server of a stack's service, registered under a name. It sets Dir of the options.
func Beside(ctx context.Context, t testing.TB, s *stack.Stack, name string, o stack.Options) *stack.Stack {
	t.Helper()
	o.Dir = Dir(t)
	b, err := s.Beside(ctx, name, o)
	return started(t, b, err, o.Dir)
}

// started ends a stack with the test, also one that did not start.
func started(t testing.TB, s *stack.Stack, err error, dir string) *stack.Stack {
	t.Helper()
	t.Cleanup(func() { check.NoError(t, s.Stop()) })
	check.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, dir)
		}
	})
	return s
}

// Dir is a new folder that PostgreSQL's system user passes through. t.TempDir has a long path, and sockets need a short one.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgherd-stack-")
	check.NoError(t, err)
	t.Cleanup(func() { check.NoError(t, os.RemoveAll(dir)) })
	check.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// Build compiles ./hosts/<name> with the given build tags and returns the program's path.
func Build(t testing.TB, name string, tags ...string) string {
	t.Helper()
	path, err := stack.Build(t.Context(), name, tags...)
	check.NoError(t, err)
	return path
}

// Open is a pool of connections that is closed with the test.
func Open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	check.NoError(t, err)
	t.Cleanup(func() { check.NoError(t, db.Close()) })
	return db
}

// Code is that with which a request was refused; empty where it was not, or where nobody answered.
func Code(err error) fault.Code {
	var refusal *apiclient.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// Refused fails the test unless a request was refused with the code.
func Refused(t testing.TB, what string, err error, code fault.Code) {
	t.Helper()
	if Code(err) != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// showLogs prints the end of what the parts have logged that were the last to say something: of a long run, only the last case
// matters, and its failure shall not drown.
func showLogs(t testing.TB, dir string) {
	t.Helper()
	const parts, most = 5, 2000
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	check.NoError(t, err)
	written := map[string]time.Time{}
	for _, file := range files {
		info, err := os.Stat(file)
		check.NoError(t, err)
		written[file] = info.ModTime()
	}
	slices.SortFunc(files, func(a, b string) int { return written[b].Compare(written[a]) })
	for _, file := range files[:min(parts, len(files))] {
		text, err := os.ReadFile(file)
		check.NoError(t, err)
		at := written[file].Format(time.TimeOnly)
		t.Logf("%s, last written to at %s:\n%s", filepath.Base(file), at, text[max(0, len(text)-most):])
	}
}

// Patience bounds every single wait: it is long for a busy machine, and only a failing test waits for its end.
const Patience = check.Patience

// Soon is a context for one wait.
func Soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Eventually looks again and again until the condition holds; why says what is missing.
func Eventually(t testing.TB, what string, condition func() (ok bool, why string)) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(stack.Pause(time.Since(began))) {
		ok, why := condition()
		if ok {
			return
		}
		if time.Since(began) > Patience {
			t.Fatalf("%s: not within %s: %s", what, Patience, why)
		}
	}
}
