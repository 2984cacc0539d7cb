// Package acceptance runs the scenarios of package spec on every driver: through HTTP with everything behind it in memory, and
// on a real service of real processes.
package acceptance

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/spec"
)

// row is one driver of the matrix: it plays every scenario but those that need what it lacks.
type row struct {
	name  string
	world func(t testing.TB) spec.World
	// shared says that all scenarios play in one world, at the same time where they may.
	shared bool
	lacks  map[spec.Ability]string // and why
}

const noDatabase = "its database server is in memory and knows no SQL; the stack tries it on PostgreSQL"

const noProcesses = "its store and its database server are part of the test's own process, and cannot go away alone"

// matrix is the one list of what runs where.
var matrix = []row{
	{name: "http", world: driver.HTTP, lacks: map[spec.Ability]string{
		spec.RunsRealSQL: noDatabase,
		spec.HasOutages:  noProcesses,
	}},
	{name: "stack", world: driver.Stack, shared: true, lacks: map[spec.Ability]string{
		spec.MovesTime: "its processes go by the machine's clock, which no test moves",
		spec.HasReceivers: "it sends to public addresses only, as in production, and no test has a receiver at one; package webhooks " +
			"has real receivers and the development host",
		spec.HasPipelines: "it asks issuers at public addresses only, as in production, and no test has an issuer at one; package " +
			"webhooks has a real one and the development host",
		spec.AgesAgents: "its agent is that of this tree, with its protocol",
	}},
}

// TestMain has twice as many scenarios as cores play at a time: on the real stack they mostly wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	sample.Tests(8, "TestMatrix", "TestImports", "TestImportCheckerFindsPlantedImports", "TestEveryScenarioHasItsDrivers",
		"TestEveryRouteOfTheSpecExists", "TestEmbeddingPage")
	status := m.Run()
	if err := driver.StopStack(); err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		status = 1
	}
	os.Exit(status)
}

func TestMatrix(t *testing.T) {
	for _, r := range matrix {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.play(t)
		})
	}
}

// play plays the driver's scenarios. Those that want the shared world for themselves play first, one after another; the others
// wait for the end of this function and play at the same time.
func (r row) play(t *testing.T) {
	scenarios := spec.Scenarios()
	if r.shared {
		scenarios = sample.OneIn(t, 40, scenarios)
	}
	for _, sc := range scenarios {
		if lacking := r.lacking(sc); lacking != "" {
			t.Logf("not here: %s/%s %s, and %s", sc.Area, sc.Name, lacking, r.lacks[lacking])
			continue
		}
		t.Run(sc.Area+"/"+sc.Name, func(t *testing.T) {
			if !sc.Alone || !r.shared {
				t.Parallel()
			}
			w := r.world(t)
			r.check(t, w)
			if r.shared && !sc.Alone {
				w = crowded(w)
			}
			sc.Play(&spec.Stage{TB: t, World: w})
		})
	}
}

// lacking names an ability that the scenario needs and the driver lacks; empty where it has all.
func (r row) lacking(sc spec.Scenario) spec.Ability {
	for _, need := range sc.Needs {
		if r.lacks[need] != "" {
			return need
		}
	}
	return ""
}

// check fails where a driver can do less, or more, than the matrix says.
func (r row) check(t *testing.T, w spec.World) {
	t.Helper()
	for ability, can := range w.Abilities() {
		if can == (r.lacks[ability] != "") {
			t.Fatalf("the driver's ability %q is %t; the matrix says otherwise", ability, can)
		}
	}
}

// TestEveryScenarioHasItsDrivers keeps the matrix honest: all drivers stand in it, whatever one lacks has a reason, and every
// scenario has a name of its own and a driver to play on.
func TestEveryScenarioHasItsDrivers(t *testing.T) {
	checkDrivers(t)
	var names []string
	for _, sc := range spec.Scenarios() {
		name := sc.Area + "/" + sc.Name
		if slices.Contains(names, name) || sc.Name == "" || strings.Contains(sc.Name, "/") {
			t.Errorf("%q: the name is empty, holds a slash, or is another scenario's, too", name)
		}
		names = append(names, name)
		if !slices.ContainsFunc(matrix, func(r row) bool { return r.lacking(sc) == "" }) {
			t.Errorf("%q plays on no driver", name)
		}
	}
}

func checkDrivers(t *testing.T) {
	t.Helper()
	var drivers []string
	known := spec.World{}.Abilities()
	for _, r := range matrix {
		drivers = append(drivers, r.name)
		for ability, reason := range r.lacks {
			if _, ok := known[ability]; !ok || reason == "" {
				t.Errorf("%s lacks %q, which is no ability, or gives no reason", r.name, ability)
			}
		}
	}
	if want := []string{"http", "stack"}; !slices.Equal(drivers, want) {
		t.Errorf("the matrix has %v; want %v", drivers, want)
	}
}
