// Package abuse_test lets one customer take as much as the service gives, beside a bystander of another account who creates,
// queries, downloads, backs up and rotates. Every request of the bystander must succeed; with -figures it must also stay about
// as fast as on an idle service.
package abuse_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
)

var figures = flag.Bool("figures", false, "measure the bystander beside each abuse, and hold the figures to their limit")

var program = stack.NewProgram()

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// patience bounds one request or wait of the bystander. It is far above what any of them takes.
const patience = 15 * time.Second

// TestBystander plays the abuses one after another on one stack.
func TestBystander(t *testing.T) {
	w := startWorld(t)
	often := few
	if *figures {
		often = many
	}
	b := newBystander(t, w)
	if *figures { // what is slow only once, such as the first connection of each pool, is no figure
		b.round(t, few, nil)
	}
	results := table{idle: b.round(t, often, nil)}
	for _, a := range abuses {
		t.Run(a.name, func(t *testing.T) {
			m := newMallory(t, w, a)
			a.begin(t, m)
			results.add(a.name, b.round(t, often, a.spares))
			if a.stillOn != nil {
				a.stillOn(t, m)
			}
		})
		b.round(t, one, nil) // whatever the abuse left behind
	}
	if *figures {
		fmt.Print(results)
		results.check(t)
	}
}

func startWorld(t *testing.T) *world {
	t.Helper()
	binary, err := program.Path()
	noError(t, err)
	dir, err := os.MkdirTemp("", "pgherd-abuse-") // t.TempDir has a long path, and sockets need a short one
	noError(t, err)
	t.Cleanup(func() { noError(t, os.RemoveAll(dir)) })
	noError(t, os.Chmod(dir, 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := stack.Start(ctx, stack.Options{
		Dir: dir, Binary: binary, TemplateDir: templateDir(), Durable: *figures, AgentFlags: agentFlags, InitFlags: initFlags,
	})
	t.Cleanup(func() { noError(t, s.Stop()) })
	noError(t, err)
	w := &world{Stack: s, agent: s.FirstAgent()}
	w.api, err = s.StartAPI(ctx, "", apiFlags...)
	noError(t, err)
	w.batch, err = s.StartBatch(ctx, "")
	noError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			w.showLogs(t)
		}
	})
	return w
}

// templateDir is the user's own cache, so that no other user can put a cluster there for us to run.
func templateDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "pgherd", "clusters")
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
