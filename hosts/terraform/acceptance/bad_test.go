package acceptance

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	f.edited(database, "id", string(theirs), func() { f.fails(nil, `a database called "shop" is there already`, "plan") })
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

// isBusy has the service at work on the database, until it has refused a change for that: the change waits.
func (f *folder) isBusy(shop id.DatabaseID) {
	f.Helper()
	check.NoError(f, f.chooses(shop, querytimeout.Balanced))
	owner := f.attribute("pgherd_database.shop", "connection_string") + "&sslrootcert=" + f.dev.Facts["PGHERD_CA_FILE"]
	db := check.Must(sql.Open("postgres", owner))(f)
	defer db.Close()
	check.Must(db.ExecContext(f.Context(), "CREATE TABLE item (n int)"))(f)
	tx := check.Must(db.BeginTx(f.Context(), nil))(f)
	defer tx.Rollback()
	for _, statement := range []string{"SET LOCAL idle_in_transaction_session_timeout = 0", "LOCK TABLE item"} {
		check.Must(tx.ExecContext(f.Context(), statement))(f)
	}
	check.Must(f.api.Backups.Start(f.Context(), shop))(f) // its pg_dump waits for the table

	var refused atomic.Bool
	f.relayed(func(asked *http.Request, status int, _ []byte) {
		if asked.Method == http.MethodPost && status == http.StatusConflict && !refused.Swap(true) {
			check.NoError(f, tx.Rollback())
		}
	})
	f.applies()
	if f.url = f.dev.URL; !refused.Load() {
		f.Error("nothing was in the way of the change")
	}
}
