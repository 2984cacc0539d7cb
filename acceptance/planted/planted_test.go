// Package planted plants bugs in the product's code, one at a time, and shows that a test finds each of them. A bug that a tired
// engineer could write, and that no test finds, is a promise that nobody keeps.
package planted

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
)

// least is how many bugs are planted.
const least = 10

// Whoever changes the code that a bug is planted in, or the test that finds it, sees that at once.
func TestBugsCanBePlanted(t *testing.T) {
	all := patches(t)
	if len(all) < least {
		t.Errorf("%d bugs, want %d", len(all), least)
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			p.apply(t, t.TempDir())
			if !p.exists(t) {
				t.Errorf("%s has no test %s", p.in, p.tests)
			}
		})
	}
}

// That the tests pass without the bug, they show themselves. A sample has one of those that are found in seconds.
func TestPlantedBugsAreFound(t *testing.T) {
	all := patches(t)
	if !sample.Whole() {
		all = slices.DeleteFunc(all, patch.takesLong)
	}
	for _, p := range sample.OneIn(t, len(all), all) {
		t.Run(p.name, func(t *testing.T) {
			switch got, out := p.run(t); got {
			case found:
			case missed:
				t.Errorf("%s passes, although this is broken: %s", p.tests, p.breaks)
			case unknown:
				t.Errorf("%s of %s neither passes nor fails:\n%s", p.tests, p.in, out)
			}
		})
	}
}

// verdict is what a test says of a bug.
type verdict int

const (
	unknown verdict = iota // it was not compiled, there is none, or it did not come to its end
	missed
	found
)

// event is a line of "go test -json".
type event struct{ Action, Test, Output string }

// run has the test look at the product with the bug.
func (p patch) run(t *testing.T) (verdict, string) {
	t.Helper()
	test := exec.CommandContext(t.Context(), "go", "test", "-overlay", p.overlay(t), "-vet=off", "-count=1", "-json",
		"-timeout", "15m", "-run", p.tests, p.in)
	test.Dir = root
	out, _ := test.CombinedOutput() // the events say more than the status
	var ended []string              // how tests have, and not the package
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // what the Go command says for itself
		}
		if strings.HasPrefix(e.Output, "panic: test timed out") {
			return unknown, string(out)
		}
		if e.Test != "" {
			ended = append(ended, e.Action)
		}
	}
	switch {
	case slices.Contains(ended, "fail"):
		return found, ""
	case slices.Contains(ended, "pass"):
		return missed, ""
	}
	return unknown, string(out)
}
