package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// folder is one that terraform works in, against a development host.
type folder struct {
	*testing.T

	dir string
	dev *stack.Dev
	api *apiclient.Client
}

// opened starts a development host, and gives a folder in which this provider is used as it is here.
func opened(t *testing.T) *folder {
	t.Helper()
	state := t.TempDir()
	check.NoError(t, os.Chmod(state, 0o755)) // PostgreSQL's system user passes through it
	program, provider := filepath.Join(state, "pgherd"), filepath.Join(state, "terraform-provider-pgherd")
	root := check.Must(toolchain.Root())(t)
	built(t, root, program, "./hosts/pgherd")
	built(t, filepath.Join(root, "hosts", "terraform"), provider, ".")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := &folder{T: t, dir: t.TempDir()}
	f.dev = check.Must(stack.StartDev(ctx, stack.DevOptions{Dir: state, Binary: program}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.dev.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	f.api = check.Must(apiclient.New(apiclient.Config{URL: f.dev.URL, Key: f.dev.Facts["SVC_API_KEY"]}))(t)
	f.writes("terraformrc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"pgherd/pgherd\" = %q\n  }\n  direct {}\n}\n", state))
	return f
}

func built(t *testing.T, in, to, what string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "build", "-o", to, what)
	c.Dir = in
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (f *folder) writes(name, text string) {
	f.Helper()
	check.NoError(f, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

// try runs terraform and returns what it prints.
func (f *folder) try(args ...string) (string, error) {
	c := exec.CommandContext(f.Context(), "terraform", append(args, "-no-color")...)
	c.Dir = f.dir
	c.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(f.dir, "terraformrc"), "TF_IN_AUTOMATION=1", "TF_INPUT=0",
		"CHECKPOINT_DISABLE=1", "SVC_BASE_URL="+f.dev.URL, "SVC_API_KEY="+f.dev.Facts["SVC_API_KEY"])
	out, err := c.CombinedOutput()
	return string(out), err
}

func (f *folder) runs(args ...string) string {
	f.Helper()
	out, err := f.try(args...)
	if err != nil {
		f.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (f *folder) applies() { f.Helper(); f.runs("apply", "-auto-approve") }

// fails expects an error that says something.
func (f *folder) fails(says string, args ...string) {
	f.Helper()
	if out, err := f.try(args...); err == nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " "), says) {
		f.Errorf("terraform %s: %v; it lacks %q\n%s", strings.Join(args, " "), err, says, out)
	}
}

var planned = regexp.MustCompile(`(?m)^  # (\S+) (will be|must be|has been deleted)`)

// plans expects a plan that changes these resources, and nothing else.
func (f *folder) plans(changed ...string) {
	f.Helper()
	out, err := f.try("plan", "-detailed-exitcode")
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 2) {
		f.Fatalf("terraform plan: %v\n%s", err, out)
	}
	var got []string
	for _, m := range planned.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(got, m[1]) {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	slices.Sort(changed)
	if !slices.Equal(got, changed) || (err == nil) != (len(changed) == 0) {
		f.Errorf("the plan changes %q, not %q\n%s", got, changed, out)
	}
}

// attribute is one of a resource in the state.
func (f *folder) attribute(address, name string) string {
	f.Helper()
	var state struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string
					Values  map[string]any
				}
			} `json:"root_module"`
		}
	}
	check.NoError(f, json.Unmarshal([]byte(f.runs("show", "-json")), &state))
	for _, r := range state.Values.Root.Resources {
		if r.Address == address {
			return fmt.Sprint(r.Values[name])
		}
	}
	return ""
}

const all = `
resource "pgherd_database" "shop" {
  name                = "shop"
  display_name        = "Shop"
  environment         = "staging"
  deletion_protection = var.protected
}
resource "pgherd_role" "reports" {
  database_id      = pgherd_database.shop.id
  display_name     = "Reports"
  access_profile   = "read_only"
  connection_limit = 2
  rotation         = var.rotation
}
resource "pgherd_member" "bob" {
  database_id = pgherd_database.shop.id
  email       = "bob@example.com"
  role        = "developer"
}
resource "pgherd_webhook" "hook" {
  database_id = pgherd_database.shop.id
  url         = "https://hooks.example.com/in"
}
resource "pgherd_allowlist_entry" "home" {
  database_id = pgherd_database.shop.id
  cidr        = "127.0.0.0/8"
  description = "this machine"
}
resource "pgherd_extension" "trigrams" {
  database_id = pgherd_database.shop.id
  name        = "pg_trgm"
}
resource "pgherd_query_timeouts" "shop" {
  database_id = pgherd_database.shop.id
  profile     = "short"
}
resource "pgherd_backup_policy" "shop" {
  database_id      = pgherd_database.shop.id
  scheduled_backup = "none"
}
variable "protected" { default = true }
variable "rotation" { default = null }
`

const sources = `
data "pgherd_database" "shop" { name = pgherd_database.shop.name }
data "pgherd_role" "reports" {
  database_id  = pgherd_database.shop.id
  display_name = pgherd_role.reports.display_name
}
data "pgherd_member" "bob" {
  database_id = pgherd_database.shop.id
  email       = pgherd_member.bob.email
}
data "pgherd_webhook" "hook" { id = pgherd_webhook.hook.id }
data "pgherd_allowlist" "shop" {
  database_id = pgherd_database.shop.id
  depends_on  = [pgherd_allowlist_entry.home]
}
data "pgherd_extension" "trigrams" {
  database_id = pgherd_database.shop.id
  name        = pgherd_extension.trigrams.name
}
data "pgherd_query_timeouts" "shop" { database_id = pgherd_query_timeouts.shop.database_id }
data "pgherd_backup_policy" "shop" { database_id = pgherd_backup_policy.shop.database_id }
data "pgherd_backups" "shop" { database_id = pgherd_database.shop.id }
output "seen" {
  value = join(" ", [
    data.pgherd_database.shop.status, data.pgherd_role.reports.status, data.pgherd_member.bob.role,
    data.pgherd_webhook.hook.enabled, data.pgherd_allowlist.shop.entries[0].cidr, data.pgherd_extension.trigrams.available,
    data.pgherd_query_timeouts.shop.effective_profile, data.pgherd_backup_policy.shop.scheduled_backup,
    length(data.pgherd_backups.shop.backups),
  ])
}
`

// addresses are the resources of all.
var addresses = []string{
	"pgherd_allowlist_entry.home", "pgherd_backup_policy.shop", "pgherd_database.shop", "pgherd_extension.trigrams",
	"pgherd_member.bob", "pgherd_query_timeouts.shop", "pgherd_role.reports", "pgherd_webhook.hook",
}

func TestProvider(t *testing.T) {
	f := opened(t)
	const head = "terraform {\n  required_providers {\n    pgherd = { source = \"pgherd/pgherd\" }\n  }\n}\n"
	f.writes("main.tf", head+all)
	f.plans(addresses...)
	f.applies()
	f.plans()
	f.writes("sources.tf", sources)
	f.applies()
	f.plans()
	if seen := strings.TrimSpace(f.runs("output", "-raw", "seen")); seen != "active ready developer true 127.0.0.0/8 true short none 0" {
		t.Errorf("the data sources say %q", seen)
	}
	shop := id.DatabaseID(f.attribute("pgherd_database.shop", "id"))
	f.isChangedByOthers(shop)
	f.rotates(shop)
	f.imports(shop)
	f.keepsPasswordsOut(shop)
	f.fails("deletion_protection is true", "destroy", "-auto-approve")
	f.plans(slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return f.attribute(a, "database_id") != "" || a == "pgherd_database.shop" })...)
	f.runs("apply", "-auto-approve", "-var", "protected=false")
	f.runs("destroy", "-auto-approve", "-var", "protected=false")
	if left := check.Must(f.api.Databases.List().Page(t.Context(), apiclient.Page{}))(t).Data; len(left) != 0 {
		t.Errorf("there is %+v", left)
	}
}

// isChangedByOthers has each thing changed by the API: the plan is to undo exactly that.
func (f *folder) isChangedByOthers(shop id.DatabaseID) {
	f.Helper()
	ctx := f.Context()
	for address, change := range map[string]func() error{
		"pgherd_database.shop": func() error {
			_, err := f.api.Databases.SetEnvironment(ctx, shop, wire.SetEnvironment{Environment: new(database.Production)})
			return err
		},
		"pgherd_role.reports": func() error {
			_, err := f.api.Roles.Rename(ctx, shop, id.RoleID(f.attribute("pgherd_role.reports", "id")), wire.RenameRole{DisplayName: "Other"})
			return err
		},
		"pgherd_member.bob": func() error {
			return f.api.Members.DeleteInvitation(ctx, shop, id.InvitationID(f.attribute("pgherd_member.bob", "id")))
		},
		"pgherd_webhook.hook": func() error {
			return f.api.Webhooks.Disable(ctx, id.WebhookID(f.attribute("pgherd_webhook.hook", "id")))
		},
		"pgherd_allowlist_entry.home": func() error {
			return f.api.Allowlist.Remove(ctx, shop, id.AllowlistEntryID(f.attribute("pgherd_allowlist_entry.home", "id")))
		},
		"pgherd_query_timeouts.shop": func() error {
			_, err := f.api.QueryTimeouts.Set(ctx, shop, wire.SetQueryTimeouts{Profile: querytimeout.Balanced})
			return err
		},
		"pgherd_backup_policy.shop": func() error {
			_, err := f.api.Backups.SetPolicy(ctx, shop, wire.SetBackupPolicy{ScheduledBackup: database.Daily})
			return err
		},
	} {
		check.NoError(f, change())
		f.plans(address)
		f.applies()
		f.plans()
	}
	_, err := f.api.Databases.SetLifecycle(ctx, shop, wire.SetLifecycle{Action: database.Stop})
	check.NoError(f, err)
	f.plans("pgherd_database.shop")
	f.applies()
	f.plans()
}

// rotates gives the role another password, once.
func (f *folder) rotates(shop id.DatabaseID) {
	f.Helper()
	generation := func() int64 { return check.Must(f.api.Roles.List(f.Context(), shop, false))(f)[0].CredentialGeneration }
	before := generation()
	f.runs("apply", "-auto-approve", "-var", "rotation=2026-11")
	f.runs("apply", "-auto-approve", "-var", "rotation=2026-11")
	if now := generation(); now != before+1 {
		f.Errorf("its password was rotated %d times", now-before)
	}
	f.runs("apply", "-auto-approve")
}

// imports forgets each resource and has it found again, by names and by IDs.
func (f *folder) imports(shop id.DatabaseID) {
	f.Helper()
	for address, names := range map[string][]string{
		"pgherd_database.shop":        {"shop", string(shop)},
		"pgherd_role.reports":         {"shop/Reports", string(shop) + "/" + f.attribute("pgherd_role.reports", "id")},
		"pgherd_member.bob":           {"shop/bob@example.com"},
		"pgherd_webhook.hook":         {f.attribute("pgherd_webhook.hook", "id"), "https://hooks.example.com/in"},
		"pgherd_allowlist_entry.home": {"shop/127.0.0.0/8", string(shop) + "/" + f.attribute("pgherd_allowlist_entry.home", "id")},
		"pgherd_extension.trigrams":   {"shop/pg_trgm"},
		"pgherd_query_timeouts.shop":  {"shop"},
		"pgherd_backup_policy.shop":   {string(shop)},
	} {
		for _, name := range names {
			f.runs("state", "rm", address)
			f.runs("import", address, name)
		}
		f.plans()
	}
	f.fails("no database that the key can see is called", "import", "pgherd_query_timeouts.shop", "nothing")
}

// keepsPasswordsOut reveals a role's password to a resource, and finds it in no file.
func (f *folder) keepsPasswordsOut(shop id.DatabaseID) {
	f.Helper()
	f.writes("password.tf", `
ephemeral "pgherd_role_password" "reports" {
  database_id = pgherd_database.shop.id
  role_id     = pgherd_role.reports.id
}
ephemeral "pgherd_login_password" "runtime" {
  database_id = pgherd_database.shop.id
  login       = "runtime"
}
check "both" {
  assert {
    condition     = ephemeral.pgherd_role_password.reports.password != ephemeral.pgherd_login_password.runtime.password
    error_message = "They have one password."
  }
}
`)
	f.applies()
	r := check.Must(f.api.Roles.List(f.Context(), shop, false))(f)[0]
	password := check.Must(f.api.Roles.Reveal(f.Context(), shop, r.RoleID))(f).Password
	if state := string(check.Must(os.ReadFile(filepath.Join(f.dir, "terraform.tfstate")))(f)); strings.Contains(state, password) {
		f.Error("the state has the password of a role")
	}
	check.NoError(f, os.Remove(filepath.Join(f.dir, "password.tf")))
}
