package acceptance

import (
	"slices"
	"strings"
	"testing"
)

// TestImportCheckerFindsPlantedImports plants one package that reaches one other, and wants the checker to say so, or nothing.
func TestImportCheckerFindsPlantedImports(t *testing.T) {
	const fine = ""
	for _, c := range []struct{ from, to, want string }{
		{"core/role", "core/fault", fine},
		{"core/role", "time", fine},
		{"core/role", "net/http", "core/role reaches net/http"},
		{"core/role", "database/sql", "core/role reaches database/sql"},
		{"core/role", "ports", "core/role reaches ports"},
		{"core/role", "example.com/vendor", "core/role reaches example.com/vendor"},
		{"core/role", "core/controlplane", "core/role imports core/controlplane"},
		{"core/id", "core/fault", "core/id reaches core/fault"},
		{"core/controlplane", "ports", fine},
		{"core/controlplane", "adapters/postgres", "core/controlplane reaches adapters/postgres"},
		{"ports", "core/role", fine},
		{"ports", "example.com/vendor", "ports reaches example.com/vendor"},
		{"fakes/memstore", "ports", fine},
		{"fakes/memstore", "testing", "fakes/memstore reaches testing"},
		{"fakes/memstore", "adapters/postgres", "fakes/memstore reaches adapters/postgres"},
		{"fakes/memstore", "core/controlplane", "fakes/memstore imports core/controlplane"},
		{"adapters/postgres", "github.com/lib/pq", fine},
		{"adapters/postgres", "adapters/httpapi", "adapters/postgres reaches adapters/httpapi"},
		{"adapters/postgres", "fakes/memstore", "adapters/postgres reaches fakes/memstore"},
		{"adapters/postgres", "go.uber.org/fx", "adapters/postgres reaches go.uber.org/fx"},
		{"adapters/postgres", "core/controlplane", "adapters/postgres imports core/controlplane"},
		{"adapters/postgres", "agent/protocol", "adapters/postgres reaches agent/protocol"},
		{"adapters/agentclient", "agent/protocol", fine},
		{"adapters/agentclient", "agent/executor", "adapters/agentclient reaches agent/executor"},
		{"adapters/httpapi", "core/controlplane", fine},
		{"adapters/unlisted", "time", "adapters/unlisted is in no room"},
		{"agent/protocol", "core/id", "agent/protocol reaches core/id"},
		{"agent/protocol", "example.com/vendor", "agent/protocol reaches example.com/vendor"},
		{"agent/executor", "core/role", fine},
		{"agent/executor", "ports", "agent/executor reaches ports"},
		{"agent/executor", "core/controlplane", "agent/executor imports core/controlplane"},
		{"hosts/api", "go.uber.org/fx", fine},
		{"hosts/api", "fakes/memstore", "hosts/api reaches fakes/memstore"},
		{"hosts/api", "testing", "hosts/api imports testing"},
		{"hosts/cluster/clustertest", "testing", fine},
		{"hosts/api", "acceptance/spec", "hosts/api reaches acceptance/spec"},
		{"hosts/dev", "fakes/memstore", fine},
		{"hosts/pgherd", "fakes/memstore", "hosts/pgherd imports fakes/memstore"},
	} {
		found := problems(planted(c.from, c.to))
		hit := slices.ContainsFunc(found, func(problem string) bool { return strings.HasPrefix(problem, c.want) })
		if c.want == fine && len(found) > 0 || c.want != fine && !hit {
			t.Errorf("%s -> %s: found %q, want %q", c.from, c.to, found, c.want)
		}
	}
}

// TestImportCheckerLooksThroughOthers plants what the linter, which sees direct imports only, cannot see.
func TestImportCheckerLooksThroughOthers(t *testing.T) {
	graph := map[string]listed{
		module + "core/role":  {Imports: []string{module + "core/fault"}, Deps: []string{module + "core/fault", "net/http"}},
		module + "core/fault": {Deps: nil},
		"net/http":            {Standard: true},
	}
	if found := problems(graph); !slices.Equal(found, []string{"core/role reaches net/http: barred from this room"}) {
		t.Errorf("found %q", found)
	}
}

// planted is a module of one package with one import. A first element with a dot is a vendor's, as in Go.
func planted(from, to string) map[string]listed {
	first, _, _ := strings.Cut(to, "/")
	name, standard := to, slices.Contains([]string{"time", "net", "database", "testing"}, first)
	if !standard && !strings.Contains(first, ".") {
		name = module + to
	}
	return map[string]listed{
		module + from: {Imports: []string{name}, Deps: []string{name}},
		"time":        {Standard: true}, "net/http": {Standard: true}, "database/sql": {Standard: true}, "testing": {Standard: true},
	}
}
