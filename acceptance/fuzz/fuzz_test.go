package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestTheTargets(t *testing.T) {
	t.Chdir("../..")
	all := check.Must(targets(t.Context()))(t)
	for _, want := range []target{{"./core/upload", "FuzzContentRange"}, {"./agent/load", "TestSearchSplitAsByPsql"}} {
		if !slices.Contains(all, want) {
			t.Errorf("%v is not among them", want)
		}
	}
	if slices.Contains(all, target{"./agent/load", "FuzzSplitAsByPsql"}) {
		t.Error("a target is run by its search, and by Go's too")
	}
}

func TestTheFiguresOfARun(t *testing.T) {
	for out, want := range map[string]string{
		"fuzz: elapsed: 3s, execs: 10 (3/sec), new interesting: 0 (total: 4)\n" +
			"fuzz: elapsed: 6s, execs: 2501 (900/sec), new interesting: 12 (total: 16)\nPASS\n": "2501 inputs, 12 of them new",
		"    search.go:54: inputs: 41, in 1m0.2s\n--- PASS: TestSearchX\n": "41 inputs",
		"ok\n": "",
	} {
		if got := figures(out); got != want {
			t.Errorf("%q: %q", out, got)
		}
	}
}

// A run replaces the lines of the targets that it has run.
func TestWhatIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures")
	check.NoError(t, keep(file, time.Minute, map[string]string{"b.FuzzB": "1 inputs", "a.FuzzA": "2 inputs"}))
	check.NoError(t, keep(file, time.Hour, map[string]string{"b.FuzzB": "3 inputs"}))
	lines := strings.Split(string(check.Must(os.ReadFile(file))(t)), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "a.FuzzA: 2 inputs in 1m0s, 20") ||
		!strings.HasPrefix(lines[1], "b.FuzzB: 3 inputs in 1h0m0s, 20") {
		t.Errorf("%q", lines)
	}
}
