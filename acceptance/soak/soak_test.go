//go:build linux && soak

package soak_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/soak"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// What "make soak" says, beside the process that carries a plan out.
const (
	seedsVariable  = "PGHERD_SOAK_SEEDS"  // how many seeds; none: one that is small
	fromVariable   = "PGHERD_SOAK_FROM"   // the first one
	planVariable   = "PGHERD_SOAK_PLAN"   // a file with a plan, which is carried out in place of seeds
	shrinkVariable = "PGHERD_SOAK_SHRINK" // for how long a plan that fails is made smaller
	insideVariable = "PGHERD_SOAK_INSIDE" // the folder of the process that carries a plan out
)

// TestSoak carries out the plans of some seeds, each in a process with namespaces of its own. Of a seed that fails, it makes the
// plan smaller, and writes it down: as a script for who reads it, and as a file to have it carried out again.
func TestSoak(t *testing.T) {
	if dir := os.Getenv(insideVariable); dir != "" {
		inside(t, dir)
		return
	}
	if os.Getuid() != 0 {
		t.Fatal("networks, disks and clocks of their own take root")
	}
	s := &seeds{T: t, root: check.Must(toolchain.Root())(t), programs: programsOf(t)}
	if file := os.Getenv(planVariable); file != "" {
		var p plan.Plan
		check.NoError(t, json.Unmarshal(check.Must(os.ReadFile(file))(t), &p))
		s.tries(p)
		return
	}
	size, many := plan.Whole, number(t, seedsVariable, 0)
	if many == 0 {
		size, many = plan.Small, 1
	}
	for n := range many {
		s.tries(plan.Make(uint64(number(t, fromVariable, 1)+n), size))
	}
}

// number is what a variable says, or what it is without.
func number(t *testing.T, variable string, without int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return without
	}
	return check.Must(strconv.Atoi(text))(t)
}

// programsOf builds the programs, once for all plans.
func programsOf(t *testing.T) soak.Programs {
	t.Helper()
	root := check.Must(toolchain.Root())(t)
	return check.Must(soak.Build(t.Context(), root, filepath.Join(root, toolchain.Dir, "programs", "soak")))(t)
}

// seeds is a run of "make soak".
type seeds struct {
	*testing.T
	root     string
	programs soak.Programs
}

// tries carries a plan out, and makes it smaller where it fails.
func (s *seeds) tries(p plan.Plan) {
	s.Helper()
	began := time.Now()
	logs := filepath.Join(s.root, toolchain.Dir, fmt.Sprintf("soak-%d", p.Seed))
	broken, said := s.carriesOut(p, logs)
	if len(broken) == 0 {
		s.Logf("seed %d: %d steps in %s: all holds", p.Seed, len(p.Steps), time.Since(began).Round(time.Second))
		return
	}
	s.Errorf("seed %d: after %s, this does not hold:\n  %s\n%s", p.Seed, time.Since(began).Round(time.Second),
		strings.Join(broken, "\n  "), end(said))
	s.Logf("what the processes have logged is in %s", logs)
	small := s.smaller(p, broken[0])
	file := filepath.Join(s.root, toolchain.Dir, fmt.Sprintf("soak-%d.json", p.Seed))
	check.NoError(s, os.WriteFile(file, check.Must(json.MarshalIndent(small, "", "\t"))(s), 0o644))
	s.Logf("the smallest plan that fails so, again by %s=%s make soak:\n%s", planVariable, file, small.Script())
}

// shrinking is for how long a plan is made smaller, where nobody says.
const shrinking = 30 * time.Minute

// smaller makes a plan smaller that breaks something, as long as what is left breaks the same, and there is time.
func (s *seeds) smaller(p plan.Plan, broken string) plan.Plan {
	limit := shrinking
	if text := os.Getenv(shrinkVariable); text != "" {
		limit = check.Must(time.ParseDuration(text))(s)
	}
	invariant, _, _ := strings.Cut(broken, ":")
	until := time.Now().Add(limit)
	return plan.Shrink(p, func(q plan.Plan) bool {
		if time.Now().After(until) {
			return false
		}
		again, _ := s.carriesOut(q, "")
		fails := slices.ContainsFunc(again, func(b string) bool { return strings.HasPrefix(b, invariant+":") })
		s.Logf("with %d of %d steps it fails: %t", len(q.Steps), len(p.Steps), fails)
		return fails
	})
}

// carriesOut runs this program again, in namespaces that end with it, to carry out a plan. It returns what does not hold, and
// what was said. Where something does not, what the processes have logged is put into the folder logs, unless that is empty.
func (s *seeds) carriesOut(p plan.Plan, logs string) (broken []string, said string) {
	s.Helper()
	dir := check.Must(os.MkdirTemp("", "soak-"))(s)
	defer os.RemoveAll(dir)
	text := check.Must(json.Marshal(order{Plan: p, Programs: s.programs}))(s)
	check.NoError(s, errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "order.json"), text, 0o600)))
	const first = `mount --make-rprivate / && mount -t proc proc /proc && exec "$0" -test.v -test.timeout 3h "-test.run=^TestSoak$"`
	again := exec.CommandContext(s.Context(), "/bin/sh", "-c", first, os.Args[0])
	again.Env = append(os.Environ(), insideVariable+"="+dir)
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	var out bytes.Buffer
	again.Stdout, again.Stderr = &out, &out
	if testing.Verbose() {
		both := io.MultiWriter(&out, os.Stdout)
		again.Stdout, again.Stderr = both, both
	}
	failed := again.Run()
	result, err := os.ReadFile(filepath.Join(dir, "broken.json"))
	if err == nil {
		err = json.Unmarshal(result, &broken)
	}
	if err != nil {
		s.Fatalf("the soak itself has failed: %v, %v\n%s", failed, err, end(out.String()))
	}
	if len(broken) > 0 && logs != "" {
		check.NoError(s, keepLogs(filepath.Join(dir, keptLogs), logs))
	}
	return broken, out.String()
}

// keptLogs is where the process inside puts the logs, most of which are on disks that end with it.
const keptLogs = "logs"

// keepLogs copies the logs below a folder to another one, which has nothing else.
func keepLogs(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if path == to {
			return fs.SkipDir
		}
		if err != nil || !e.Type().IsRegular() || filepath.Ext(path) != ".log" {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		kept := filepath.Join(to, below)
		return errors.Join(err, os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, text, 0o644))
	})
}

// order is what the process inside is to do.
type order struct {
	Plan     plan.Plan     `json:"plan"`
	Programs soak.Programs `json:"programs"`
}

// inside carries a plan out, and writes down what does not hold.
func inside(t *testing.T, dir string) {
	t.Helper()
	var o order
	check.NoError(t, json.Unmarshal(check.Must(os.ReadFile(filepath.Join(dir, "order.json")))(t), &o))
	came, err := soak.Carry(t.Context(), dir, o.Programs, o.Plan)
	check.NoError(t, err)
	for _, what := range slices.Sorted(maps.Keys(came.Done)) {
		t.Logf("%5d  %s", came.Done[what], what)
	}
	if len(came.Broken) > 0 {
		check.NoError(t, keepLogs(dir, filepath.Join(dir, keptLogs)))
	}
	text := check.Must(json.Marshal(append([]string{}, came.Broken...)))(t)
	check.NoError(t, os.WriteFile(filepath.Join(dir, "broken.json"), text, 0o600))
}

// end is the end of a long text.
func end(of string) string {
	const most = 8000
	return of[max(0, len(of)-most):]
}
