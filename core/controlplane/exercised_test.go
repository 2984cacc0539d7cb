package controlplane_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/ports"
)

// TestMain runs the tests, and then holds the blows to what the tests have done: each use case that any test has seen write has
// written in a process that blows befall, too. So a use case that is new is in the matrix, or says here why it is not.
func TestMain(m *testing.M) {
	code := m.Run()
	if all := flag.Lookup("test.run").Value.String() == ""; code == 0 && all && sample.Whole() {
		if gaps := unstruck(); len(gaps) > 0 {
			fmt.Fprintf(os.Stderr, "written by tests, and struck by none:\n  %s\n", strings.Join(gaps, "\n  "))
			code = 1
		}
	}
	os.Exit(code)
}

// apart are the use cases that no blow befalls, and why.
var apart = map[string]string{
	"mails.(*Dispatcher).Run":            "it does RunNext again and again",
	"webhooks.(*Dispatcher).Run":         "likewise, with FanOut",
	"people.(*People).BeginSignOnProof":  "it writes with a code alone, which it takes as ProveAgain does",
	"certificates.(*Certificates).Issue": "a test writes while the manifest is read",
	"uploads.(*Uploads).Send":            "a test writes while it sends",
	"work.(*Engine).Reserved":            "a test writes there",
}

// places are those in the code that were on the stack of some call of a port.
type places struct {
	mu sync.Mutex
	of map[uintptr]bool
}

var writes, struckWrites places

// deepest is more than any use case's calls are deep, with those of its test.
const deepest = 100

func (p *places) note() {
	var stack [deepest]uintptr
	depth := runtime.Callers(3, stack[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[uintptr]bool{}
	}
	for _, at := range stack[:depth] {
		p.of[at] = true
	}
}

// useCase is an exported method of a use case's package, whichever closure of it calls.
var useCase = regexp.MustCompile(
	`^github\.com/pgherd/pgherd/core/controlplane/(\w+\.\(?\*?[A-Z]\w*\)?\.[A-Z]\w*)(\.func[\d.]+|\[\.\.\.\])*$`)

func (p *places) useCases() map[string]bool {
	found := map[string]bool{}
	for frames, more := runtime.CallersFrames(slices.Collect(maps.Keys(p.of))), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if name := useCase.FindStringSubmatch(f.Function); name != nil {
			found[name[1]] = true
		}
	}
	return found
}

func unstruck() (gaps []string) {
	met := struckWrites.useCases()
	for _, name := range slices.Sorted(maps.Keys(writes.useCases())) {
		if reason := apart[name]; met[name] != (reason == "") {
			gaps = append(gaps, fmt.Sprintf("%s (apart: %q)", name, reason))
		}
	}
	return gaps
}

// notedStore notes who writes.
type notedStore struct{ ports.Store }

// Update implements ports.Store.
func (s notedStore) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	writes.note()
	return s.Store.Update(ctx, fn)
}
