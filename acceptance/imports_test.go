package acceptance

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pgherd/pgherd/"

// room is a part of the tree, and what none of its packages may reach. What they may import stands in .golangci.yml: depguard
// checks each import where it is written. The table here holds what that cannot see: what is reached through other packages, such
// as net/http through one of the standard library, or the fakes through the dev host.
type room struct {
	// pattern and the names below are written without the module's name. A pattern that ends in "/..." stands for the package
	// and all below it.
	pattern string
	barred  []string
}

var (
	effects = []string{"net/http", "database/sql", "os/exec", "testing", "go.uber.org/fx/..."}
	wiring  = []string{"go.uber.org/fx/..."}
	// The one adapter that talks SQL is postgres.
	wiringOrSQL = []string{"go.uber.org/fx/...", "database/sql"}
	fakes       = []string{"fakes/..."}
	// The command-line client calls the API, and holds no part of the service.
	client = []string{
		"go.uber.org/fx/...", "go.uber.org/zap/...", "database/sql", "testing", "github.com/gofiber/fiber/v2/...",
		"github.com/jmoiron/sqlx/...", "github.com/lib/pq/...", "fakes/...", "ports/...", "agent/...", "core/controlplane/...",
	}
)

// under is what a package of the agent must not reach: the wiring, and the packages of the agent that stand above or beside it.
func under(packages ...string) []string { return slices.Concat(wiring, packages) }

// resources are the packages of the agent that carry out commands about databases and logins. What stands beside them reaches
// them by the ledger.
var resources = []string{
	"agent/databases", "agent/logins", "agent/settings", "agent/overlay", "agent/relocate", "agent/guard", "agent/endless",
}

// aboveCopies are the packages that rest on what copies and backups share.
var aboveCopies = slices.Concat(resources, []string{"agent/ledger", "agent/copies", "agent/backup", "agent/extensions"})

// rooms: the first row that matches a package holds for it. A folder that has no row fails, so that a new one gets its rules here
// and in .golangci.yml.
var rooms = []room{
	{"core/...", effects},
	{"ports/...", effects},
	{"fakes/...", effects},
	{"agent/ledger/...", under(
		"agent/overlay", "agent/databases", "agent/logins", "agent/settings", "agent/relocate", "agent/guard")},
	{"agent/overlay/...", under("agent/databases", "agent/logins", "agent/settings", "agent/relocate", "agent/guard")},
	{"agent/databases/...", under("agent/logins", "agent/settings", "agent/relocate", "agent/guard")},
	{"agent/logins/...", under("agent/databases", "agent/settings", "agent/relocate", "agent/guard")},
	{"agent/settings/...", under("agent/logins", "agent/relocate", "agent/guard")},
	{"agent/relocate/...", under("agent/logins", "agent/settings", "agent/guard")},
	{"agent/commons/...", under(resources...)},
	{"agent/floors/...", under(slices.Concat(aboveCopies, []string{"agent/pooler", "agent/setup"})...)},
	{"agent/sessions/...", under(aboveCopies...)},
	{"agent/canary/...", under(aboveCopies...)},
	{"agent/content/...", under(aboveCopies...)},
	{"agent/pgdump/...", under(aboveCopies...)},
	{"agent/diskroom/...", under(aboveCopies...)},
	{"agent/uploads/...", under(aboveCopies...)},
	{"agent/copies/...", under(slices.Concat(resources, []string{"agent/backup", "agent/extensions"})...)},
	{"agent/backup/...", under(slices.Concat(resources, []string{"agent/extensions"})...)},
	{"agent/extensions/...", under(resources...)},
	{"agent/...", wiring},
	{"adapters/postgres/...", wiring},
	{"adapters/agentclient/...", wiringOrSQL},
	{"adapters/system/...", effects},
	{"adapters/httpapi/...", wiringOrSQL},
	{"adapters/apiclient/...", wiringOrSQL},
	{"adapters/dashboard/...", wiringOrSQL},
	{"adapters/secretbox/...", wiringOrSQL},
	{"adapters/mailer/...", wiringOrSQL},
	{"adapters/snapshots/...", wiringOrSQL},
	{"adapters/metrics/...", wiring}, // Prometheus has a collector of database/sql.
	{"adapters/traces/...", wiringOrSQL},
	{"adapters/passwords/...", effects},
	{"adapters/passkeys/...", wiringOrSQL},
	{"adapters/webhooksender/...", wiringOrSQL},
	{"adapters/oidc/...", wiringOrSQL},
	{"adapters/guarded/...", wiringOrSQL},
	{"adapters/certfile/...", wiringOrSQL},
	{"hosts/dev/...", nil},
	{"hosts/pgherd/...", nil}, // It holds the dev host as one of its subcommands.
	{"hosts/svc/...", client},
	{"hosts/...", fakes},
	{"acceptance/...", nil},
}

// listed is what "go list -json" says of a package.
type listed struct {
	ImportPath string
	Deps       []string
}

func TestImports(t *testing.T) {
	for _, problem := range problems(listPackages(t)) {
		t.Error(problem)
	}
}

func listPackages(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Deps", module+"...").Output()
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
		own, isOwn := strings.CutPrefix(name, module)
		if !isOwn {
			continue
		}
		i := slices.IndexFunc(rooms, func(r room) bool { return matches(r.pattern, own) })
		if i < 0 {
			found = append(found, own+" is in no room of the import table")
			continue
		}
		for _, dep := range packages[name].Deps {
			dep = strings.TrimPrefix(dep, module)
			if slices.ContainsFunc(rooms[i].barred, func(pattern string) bool { return matches(pattern, dep) }) {
				found = append(found, own+" reaches "+dep)
			}
		}
	}
	return found
}

func matches(pattern, name string) bool {
	if tree, isTree := strings.CutSuffix(pattern, "/..."); isTree {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return name == pattern
}
