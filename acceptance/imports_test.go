package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pgherd/pgherd/"

// room is a row of the import table: what the packages that match its pattern may reach, directly or through others. Patterns
// and packages of this module are written without the module's name. A pattern that ends in "/..." stands for the package and
// all below it.
type room struct {
	pattern string
	// allowed are the packages of this module that may be reached.
	allowed []string
	// denied are packages of the standard library and of vendors that may not be reached; where vendors is false, none of the
	// latter may.
	denied  []string
	vendors bool
}

var (
	effects = []string{"net/http", "database/sql", "os/exec", "testing", "go.uber.org/fx/..."}
	wiring  = []string{"go.uber.org/fx/..."}
	// The one adapter that talks SQL is postgres.
	wiringOrSQL = []string{"go.uber.org/fx/...", "database/sql"}
)

// rooms: the first row that matches a package holds for it.
var rooms = []room{
	{pattern: "core/fault", denied: effects},
	{pattern: "core/id", denied: effects},
	{pattern: "core/controlplane/...", allowed: []string{"core/...", "ports/..."}, denied: effects},
	{pattern: "core/...", allowed: []string{"core/..."}, denied: effects},
	{pattern: "ports/...", allowed: []string{"core/..."}, denied: effects},
	{pattern: "fakes/...", allowed: []string{"core/...", "ports/...", "fakes/..."}, denied: effects},
	{pattern: "agent/protocol", denied: wiring},
	{pattern: "agent/...", allowed: []string{"agent/...", "core/..."}, denied: wiring, vendors: true},
	{pattern: "adapters/httpapi/...", allowed: adapter("httpapi"), denied: wiringOrSQL, vendors: true},
	{pattern: "adapters/dashboard/...", allowed: adapter("dashboard"), denied: wiringOrSQL, vendors: true},
	{pattern: "adapters/agentclient/...", allowed: append(adapter("agentclient"), "agent/protocol"), denied: wiring, vendors: true},
	{pattern: "adapters/postgres/...", allowed: adapter("postgres"), denied: wiring, vendors: true},
	{pattern: "adapters/secretbox/...", allowed: adapter("secretbox"), denied: wiringOrSQL, vendors: true},
	{pattern: "adapters/system/...", allowed: adapter("system"), denied: effects},
	{pattern: "adapters/mailer/...", allowed: adapter("mailer"), denied: wiringOrSQL, vendors: true},
	{pattern: "adapters/webhooksender/...", allowed: adapter("webhooksender"), denied: wiringOrSQL, vendors: true},
	{pattern: "hosts/cluster/clustertest", allowed: []string{"hosts/cluster", "hosts/toolchain", "agent/versions"}, vendors: true},
	{pattern: "hosts/dev/...", allowed: everything("fakes/..."), vendors: true},
	// The program holds the dev host as one of its subcommands, and reaches the fakes by that way only: see the direct imports.
	{pattern: "hosts/pgherd/...", allowed: everything("fakes/..."), vendors: true},
	{pattern: "hosts/...", allowed: everything(), vendors: true},
	{pattern: "acceptance/...", allowed: append(everything("fakes/..."), "acceptance/..."), vendors: true},
}

func adapter(name string) []string {
	return []string{"core/...", "ports/...", "adapters/" + name + "/..."}
}

func everything(more ...string) []string {
	return append([]string{"core/...", "ports/...", "adapters/...", "agent/...", "hosts/..."}, more...)
}

// barred are direct imports: those that the table of what is reached cannot tell from allowed ones, and "testing", which some
// vendors import too.
var barred = []struct{ from, to, except string }{
	{"core/...", "core/controlplane/...", "core/controlplane/..."},
	{"ports/...", "core/controlplane/...", ""},
	{"fakes/...", "core/controlplane/...", ""},
	{"agent/...", "core/controlplane/...", ""},
	{"adapters/...", "core/controlplane/...", "adapters/httpapi/..."},
	{"hosts/...", "fakes/...", "hosts/dev/..."},
	{"adapters/...", "testing", ""},
	{"agent/...", "testing", ""},
	{"hosts/...", "testing", "hosts/cluster/clustertest"},
}

// listed is what "go list -json" says of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func TestImports(t *testing.T) {
	for _, problem := range problems(listPackages(t)) {
		t.Error(problem)
	}
}

func listPackages(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", module+"...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	packages := map[string]listed{}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// problems checks every package of the module, in order of name.
func problems(packages map[string]listed) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if own, isOwn := strings.CutPrefix(name, module); isOwn {
			found = append(found, reachProblems(own, packages)...)
			found = append(found, barredProblems(own, packages[name].Imports)...)
		}
	}
	return found
}

func reachProblems(own string, packages map[string]listed) []string {
	i := slices.IndexFunc(rooms, func(r room) bool { return matches(r.pattern, own) })
	if i < 0 {
		return []string{own + " is in no room of the import table"}
	}
	var found []string
	for _, dep := range packages[module+own].Deps {
		if why := rooms[i].refuses(dep, packages[dep].Standard); why != "" {
			found = append(found, fmt.Sprintf("%s reaches %s: %s", own, strings.TrimPrefix(dep, module), why))
		}
	}
	return found
}

// refuses says why a package may not be reached from the room, or "".
func (r room) refuses(dep string, standard bool) string {
	own, isOwn := strings.CutPrefix(dep, module)
	switch {
	case isOwn && !matchesAny(r.allowed, own):
		return "not a room that it may import"
	case !isOwn && matchesAny(r.denied, dep):
		return "barred from this room"
	case !isOwn && !standard && !r.vendors:
		return "this room has no vendors"
	}
	return ""
}

func barredProblems(own string, imports []string) []string {
	var found []string
	for _, bar := range barred {
		for _, dep := range imports {
			to := strings.TrimPrefix(dep, module)
			if matches(bar.from, own) && !matches(bar.except, own) && matches(bar.to, to) {
				found = append(found, fmt.Sprintf("%s imports %s", own, to))
			}
		}
	}
	return found
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

func matches(pattern, name string) bool {
	if tree, isTree := strings.CutSuffix(pattern, "/..."); isTree {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return pattern != "" && path.Clean(name) == pattern
}
