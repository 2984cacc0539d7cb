package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// refusesWhatIsWrong tries what people and machines do wrong. Each is said, and nothing is changed.
func (f *folder) refusesWhatIsWrong(shop id.DatabaseID) {
	f.Helper()
	f.fails(with{"SVC_API_KEY": "pgh_nobodys0"}, "401 UNAUTHORIZED", "plan")
	f.fails(with{"SVC_API_KEY": f.dev.Facts["SVC_API_KEY"] + "\n"}, "the key holds characters that no key has", "plan")
	f.fails(with{"SVC_API_KEY": ""}, "give SVC_API_KEY", "plan")
	f.fails(with{"SVC_BASE_URL": ""}, "give url", "plan")
	f.fails(with{"SVC_BASE_URL": "https://somebody:secret@pgherd.example.com"}, "URL must have no user", "plan")
	f.fails(with{"SVC_CA_FILE": filepath.Join(f.dir, "main.tf")}, "has no certificate in PEM", "plan")
	f.configuredWrong()
	f.editedByHand(shop)
	f.awayForAWhile()
	f.isBusy(shop)
	f.plans()
}

// configuredWrong has values that the service would not take, or would write in another way: no plan comes of them.
func (f *folder) configuredWrong() {
	f.Helper()
	for block, says := range map[string]string{
		`resource "pgherd_database" "x" {
  name         = "Shop"
  display_name = "Shop"
}`: "The service does not take that",
		`resource "pgherd_database" "x" {
  name         = "other"
  display_name = " Other"
}`: `the service writes it "Other": write it so`,
		`resource "pgherd_database" "x" {
  name         = "other"
  display_name = "Other"
  timeout      = "soon"
}`: "must be a duration, such as 90s, 20m or 1h",
		`resource "pgherd_allowlist_entry" "x" {
  database_id = pgherd_database.shop.id
  cidr        = "198.51.100.7"
}`: `the service writes it "198.51.100.7/32": write it so`,
		`resource "pgherd_webhook" "x" { url = "https://Hooks.example.com/in#part" }`: `the service writes it "https://hooks.`,
		`resource "pgherd_query_timeouts" "x" {
  database_id = "SHOP"
  profile     = "short"
}`: "The service does not take that",
		`resource "pgherd_ci_trust" "x" {
  namespace_id = data.pgherd_ci_namespace.dev.id
  issuer       = "https://ci.example.com"
  audience     = "a"
  subject      = "repo:*"
}`: "must name whose it is before the first *",
		`data "pgherd_database" "x" { name = "nothing" }`: `no database that the key can see is called "nothing"`,
		`data "pgherd_ci_namespace" "x" {}`:               "give id or name",
	} {
		f.writes("wrong.tf", block)
		f.fails(nil, says, "plan")
	}
	// What only the service knows, it says while it is applied.
	f.writes("wrong.tf", `resource "pgherd_allowlist_entry" "x" {
  database_id = pgherd_database.shop.id
  cidr        = "127.0.0.0/8"
}`)
	f.fails(nil, "It was not made", "apply", "-auto-approve")
	check.NoError(f, os.Remove(filepath.Join(f.dir, "wrong.tf")))
}

// editedByHand has states that somebody has written into.
func (f *folder) editedByHand(shop id.DatabaseID) {
	f.Helper()
	const database, role, trust = "pgherd_database.shop", `pgherd_role.reports["a"]`, `pgherd_ci_trust.main["repo:acme/shop:**"]`
	others, theirs := f.another()
	f.edited(database, "id", string(theirs), func() {
		// It is as if there were none, and so is what belongs to it.
		f.plansWith(nil, without(addresses, "pgherd_ci_trust.")...)
		out, err := f.try(nil, "apply", "-auto-approve", "-target=pgherd_database.shop")
		if err == nil || !strings.Contains(out, "name: is taken") {
			f.Errorf("another database of the same name: %v\n%s", err, out)
		}
	})
	f.edited(role, "database_id", string(theirs), func() { f.plans(role) })
	for _, value := range []string{"nonsense", strings.ToUpper(string(shop)), "../" + string(shop)} {
		f.edited(database, "id", value, func() { f.fails(nil, "must be a lowercase UUID", "plan") })
	}
	f.edited(database, "id", nil, func() { f.fails(nil, "The state has no ID of it", "plan") })
	f.edited(role, "database_id", nil, func() { f.fails(nil, "database_id is <null>", "plan") })
	f.edited(role, "id", nil, func() { f.fails(nil, `"terraform import"`, "apply", "-auto-approve") })
	f.edited(trust, "namespace_id", "../../databases", func() { f.fails(nil, "must be a lowercase UUID", "plan") })
	f.edited(role, "display_name", nil, func() { f.plans() })
	f.edited(database, "password", nil, func() {
		f.plans()
		f.applies("-var", "protected=false") // it stays unknown, and is in nobody's way
		f.applies()
		if p := f.attribute(database, "password"); p != "" {
			f.Error("a password came back")
		}
	})
	if got, err := others.Databases.Get(f.Context(), theirs); err != nil || got.Status != "active" {
		f.Errorf("the database of another account is %s, %v", got.Status, err)
	}
}

// another makes an account that has a database.
func (f *folder) another() (*apiclient.Client, id.DatabaseID) {
	f.Helper()
	account := fmt.Sprint(f.admin("account", "create", "--email", "eve@example.com", "--name", "Eve", "--plan", "pro")["accountId"])
	key := fmt.Sprint(f.admin("key", "create", "--account", account, "--label", "x", "--scope", "full")["apiKey"])
	f.secrets["the API key of another account"] = key
	others := check.Must(apiclient.New(apiclient.Config{URL: f.dev.URL, Key: key}))(f)
	made := check.Must(others.Databases.Create(f.Context(), wire.CreateDatabase{Name: "theirs", DisplayName: "Theirs"}))(f)
	return others, made.ID
}

// without are the addresses that do not begin so.
func without(all []string, prefix string) (some []string) {
	for _, a := range all {
		if !strings.HasPrefix(a, prefix) {
			some = append(some, a)
		}
	}
	return some
}

// awayForAWhile has the service away, hanging, and in maintenance.
func (f *folder) awayForAWhile() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 2*time.Minute)
	defer cancel()
	check.NoError(f, f.dev.Stop(ctx))
	f.fails(nil, "connection refused", "plan")
	check.NoError(f, f.dev.Restart(ctx, ""))
	f.plans()

	f.writes("slow.tf", `resource "pgherd_role" "slow" {
  database_id      = pgherd_database.shop.id
  display_name     = "Slow"
  access_profile   = "custom"
  connection_limit = 1
  timeout          = "3s"
}`)
	check.NoError(f, f.dev.Freeze())
	began := time.Now()
	f.fails(nil, "no whole answer came, so it may have been done",
		"apply", "-auto-approve", "-refresh=false", "-target=pgherd_role.slow")
	if took := time.Since(began); took > 30*time.Second {
		f.Errorf("a timeout of 3 s took %s", took)
	}
	check.NoError(f, f.dev.Thaw())
	check.NoError(f, os.Remove(filepath.Join(f.dir, "slow.tf")))

	f.admin("maintenance", "on")
	over := time.AfterFunc(5*time.Second, func() { f.admin("maintenance", "off") })
	defer over.Stop()
	f.plans() // it waits
}

// isBusy has the service at work on the database: what is to be changed waits for that.
func (f *folder) isBusy(shop id.DatabaseID) {
	f.Helper()
	check.NoError(f, f.chooses(shop, querytimeout.Balanced))
	check.Must(f.api.Backups.Start(f.Context(), shop))(f)
	f.applies()
}
