package acceptance

import (
	"slices"
	"testing"
)

// TestImportCheckerFindsPlantedImports plants one package that reaches one other, and wants the checker to say so, or nothing.
func TestImportCheckerFindsPlantedImports(t *testing.T) {
	const fine = ""
	for _, c := range []struct{ from, reached, want string }{
		{"core/role", "time", fine},
		{"core/role", "net/http", "core/role reaches net/http"},
		{"core/controlplane", "database/sql", "core/controlplane reaches database/sql"},
		{"ports", "testing", "ports reaches testing"},
		{"fakes/memstore", "os/exec", "fakes/memstore reaches os/exec"},
		{"agent/ledger", "go.uber.org/fx/internal", "agent/ledger reaches go.uber.org/fx/internal"},
		{"adapters/postgres", "database/sql", fine},
		{"adapters/httpapi", "database/sql", "adapters/httpapi reaches database/sql"},
		{"adapters/unlisted", "time", "adapters/unlisted is in no room of the import table"},
		{"hosts/api", module + "fakes/memstore", "hosts/api reaches fakes/memstore"},
		{"hosts/pgherd", module + "fakes/memstore", fine},
		{"hosts/svc/cli", module + "adapters/apiclient", fine},
		{"hosts/svc/cli", "github.com/gofiber/fiber/v2", "hosts/svc/cli reaches github.com/gofiber/fiber/v2"},
		{"hosts/svc/cli", "go.uber.org/fx", "hosts/svc/cli reaches go.uber.org/fx"},
		{"hosts/svc/cli", "github.com/jmoiron/sqlx", "hosts/svc/cli reaches github.com/jmoiron/sqlx"},
		{"hosts/svc", "github.com/lib/pq/oid", "hosts/svc reaches github.com/lib/pq/oid"},
	} {
		found := problems(map[string]listed{module + c.from: {Deps: []string{c.reached}}})
		if c.want == fine && len(found) > 0 || c.want != fine && !slices.Equal(found, []string{c.want}) {
			t.Errorf("%s reaches %s: found %q, want %q", c.from, c.reached, found, c.want)
		}
	}
}
