// Package clustertest gives tests a real PostgreSQL: one cluster for a test binary, an empty database for each test.
//
// A package that uses it says so once:
//
//	func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }
//
// The cluster starts with the first test that asks for it. Where no PostgreSQL 16 is found, that test fails; it is not skipped.
package clustertest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

var shared struct {
	start func() (*cluster.Postgres, error)
}

// Main runs the tests, then stops the shared cluster and removes its files. Of a sample that the package has not chosen itself,
// one in two tests runs. It returns the exit status.
func Main(m *testing.M) int {
	if flag.Lookup("test.skip").Value.String() == "" {
		sample.Tests(2)
	}
	dir, err := os.MkdirTemp("", "pgherd-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "clustertest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running *cluster.Postgres
	shared.start = sync.OnceValues(func() (*cluster.Postgres, error) {
		var err error
		running, err = cluster.Run(ctx, options(dir, nil))
		return running, err
	})
	status := m.Run()
	if running != nil {
		if err := running.Stop(ctx, cluster.Immediate); err != nil {
			fmt.Fprintln(os.Stderr, "clustertest:", err)
			return 1
		}
	}
	return status
}

// Postgres is the cluster that all tests of the binary share. Tests that stop, kill or freeze a cluster take one from New.
func Postgres(t testing.TB) *cluster.Postgres {
	t.Helper()
	if shared.start == nil {
		t.Fatal("clustertest: TestMain must call clustertest.Main")
	}
	return check.Must(shared.start())(t)
}

// New starts a cluster of the test's own, which ends with the test.
func New(t testing.TB, settings map[string]string) *cluster.Postgres {
	t.Helper()
	return start(t, options(t.TempDir(), settings))
}

// NewOn is New with the programs of another PostgreSQL.
func NewOn(t testing.TB, tools toolchain.Tools, settings map[string]string) *cluster.Postgres {
	t.Helper()
	o := options(t.TempDir(), settings)
	o.Tools = tools
	return start(t, o)
}

func start(t testing.TB, o cluster.Options) *cluster.Postgres {
	t.Helper()
	pg := check.Must(cluster.Run(context.Background(), o))(t)
	t.Cleanup(func() { check.NoError(t, errors.Join(pg.Thaw(), pg.Stop(context.Background(), cluster.Immediate))) })
	return pg
}

func options(dir string, settings map[string]string) cluster.Options {
	return cluster.Options{Dir: dir, Settings: settings, Fast: true, TemplateDir: TemplateDir()}
}

// TemplateDir is in the user's own cache, so that no other user can put a cluster there for us to run.
func TemplateDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "" // No home folder: each cluster comes from initdb itself.
	}
	return filepath.Join(cache, "pgherd", "clusters")
}
