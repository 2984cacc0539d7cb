package plan_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/hosts/admin"
	"github.com/pgherd/pgherd/hosts/svc/cli"
)

// without are the capabilities that no action is made of, and why.
var without = map[plan.Way]map[string]string{
	plan.API: {
		"confirmUpgrade": "there is an upgrade to confirm only between servers of two versions",
	},
	plan.Svc: {
		"svc auth login": "the account's key is in the environment", "svc auth logout": "as svc auth login",
		"svc completion bash": "it asks nobody", "svc completion zsh": "it asks nobody", "svc completion fish": "it asks nobody",
		"svc webhooks verify": "it asks nobody", "svc databases confirm-upgrade": "as confirmUpgrade",
		"svc psql": "it is psql, with what svc connect prints", "svc operations wait": "what waits is run with --wait",
	},
	plan.Operator: {
		// What begins a soak.
		"account create": atFirst, "server add": atFirst, "secrets init": atFirst, "certificate-key create": atFirst,
		// What ends, or takes as it is, what did not come to its end by itself. In a soak all has to.
		"operation fail": byItself, "operation retry": byItself, "operation delete-unverified": byItself, "change end": byItself,
		"database open": "it lets into a database that its storage has closed, which the soak's rows do not fill",
		// What repairs metadata or servers that have lost something. The soak's lose nothing.
		"database adopt": unlost, "database drop-unknown": unlost, "database adopt-role": unlost, "database drop-role": unlost,
		"database recover": unlost, "database finish-deletion": unlost, "backup adopt": unlost, "backup forget": unlost,
		"metadata confirm": unlost, "installation rebuild": unlost, "server recover": unlost, "server remove": unlost,
		"server archive-key":       "it shows the key by which a lost server comes back",
		"database confirm-upgrade": "as confirmUpgrade",
		"user unlink-sign-on":      "nobody in a soak logs in by a provider's",
	},
}

const (
	atFirst  = "the soak begins with it"
	byItself = "it ends what does not end by itself: in a soak all has to"
	unlost   = "it is for what was lost or went back, as acceptance/crash and the operator's year have it; a soak may lose nothing"
)

// TestEveryCapabilityIsSoaked holds the catalog to what the service offers: the API's routes, the commands of svc and those of
// the operators.
func TestEveryCapabilityIsSoaked(t *testing.T) {
	offered := map[plan.Way][]string{plan.Svc: leaves(cli.Root(), ""), plan.Operator: leaves(admin.Command(), "admin ")}
	for _, r := range httpapi.Routes(&controlplane.ControlPlane{}) {
		offered[plan.API] = append(offered[plan.API], r.Name)
	}
	for way, names := range offered {
		used := map[string]bool{}
		for _, c := range plan.Catalog {
			for _, name := range c.Ways[way] {
				used[name] = true
			}
		}
		for _, name := range names {
			switch reason := without[way][name]; {
			case !used[name] && reason == "":
				t.Errorf("%s: nothing does %s", way, name)
			case used[name] && reason != "":
				t.Errorf("%s: %s is done, although %s", way, name, reason)
			}
		}
		for _, list := range []map[string]bool{used, reasons(way)} {
			for name := range list {
				if !slices.Contains(names, name) {
					t.Errorf("%s: there is no %s", way, name)
				}
			}
		}
	}
}

func reasons(way plan.Way) map[string]bool {
	names := map[string]bool{}
	for name := range without[way] {
		names[name] = true
	}
	return names
}

// leaves are the commands that do something, as they are called.
func leaves(c *cobra.Command, cut string) (list []string) {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, leaves(below, cut)...)
		}
	}
	if len(list) == 0 || strings.Contains(c.Use, "DATABASE") || c.LocalNonPersistentFlags().HasAvailableFlags() {
		list = append(list, strings.TrimPrefix(c.CommandPath(), cut))
	}
	return list
}

// Every route of the document is one of those names.
func TestEveryRouteOfTheDocumentIsSoaked(t *testing.T) {
	text, err := os.ReadFile("../../routes.txt")
	if err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{\w+\}`)
	names := map[string]string{}
	for _, r := range httpapi.Routes(&controlplane.ControlPlane{}) {
		names[r.Method+" "+parameter.ReplaceAllString(r.Path, "{}")] = r.Name
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name := names[parameter.ReplaceAllString(line, "{}")]
		if reason := without[plan.API][name]; name == "" || reason != "" {
			t.Errorf("%s (%q) is not soaked: %s", line, name, reason)
		}
	}
}
