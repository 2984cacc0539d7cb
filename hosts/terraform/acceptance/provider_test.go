package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/querytimeout"
	core "github.com/pgherd/pgherd/core/role"
)

const all = `
terraform {
  required_providers {
    pgherd = { source = "pgherd/pgherd" }
  }
}
variable "protected" { default = true }
variable "rotation" { default = null }
variable "label" { default = "Shop" }
resource "pgherd_database" "shop" {
  name                = "shop"
  display_name        = var.label
  environment         = "staging"
  deletion_protection = var.protected
}
resource "pgherd_role" "reports" {
  for_each         = toset(["a", "b"])
  database_id      = pgherd_database.shop.id
  display_name     = "Reports ${each.key}"
  access_profile   = "read_only"
  connection_limit = 2
  rotation         = var.rotation
}
resource "pgherd_member" "guest" {
  for_each    = toset(["ann@example.com", "bob@example.com"])
  database_id = pgherd_database.shop.id
  email       = each.key
  role        = "developer"
}
resource "pgherd_webhook" "hook" {
  database_id = pgherd_database.shop.id
  url         = "https://127.0.0.1:9/in"
  rotation    = var.rotation
}
resource "pgherd_allowlist_entry" "home" {
  for_each    = toset(["127.0.0.0/8", "192.0.2.0/24"])
  database_id = pgherd_database.shop.id
  cidr        = each.key
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
data "pgherd_ci_namespace" "dev" { id = "NAMESPACE" }
resource "pgherd_ci_trust" "main" {
  for_each     = toset(["repo:acme/shop:**", "repo:acme/web:pull_request"])
  namespace_id = data.pgherd_ci_namespace.dev.id
  issuer       = "https://token.actions.githubusercontent.com"
  audience     = "https://pgherd.example.com"
  subject      = each.key
}
`

const sources = `
data "pgherd_database" "shop" { name = pgherd_database.shop.name }
data "pgherd_role" "reports" {
  database_id  = pgherd_database.shop.id
  display_name = pgherd_role.reports["a"].display_name
}
data "pgherd_member" "bob" {
  database_id = pgherd_database.shop.id
  email       = pgherd_member.guest["bob@example.com"].email
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
data "pgherd_ci_trusts" "dev" {
  namespace_id = data.pgherd_ci_namespace.dev.id
  depends_on   = [pgherd_ci_trust.main]
}
output "seen" {
  value = join(" ", [
    data.pgherd_database.shop.status, data.pgherd_role.reports.status, data.pgherd_member.bob.role,
    data.pgherd_webhook.hook.enabled, length(data.pgherd_allowlist.shop.entries), data.pgherd_extension.trigrams.available,
    data.pgherd_query_timeouts.shop.effective_profile, data.pgherd_backup_policy.shop.scheduled_backup,
    length(data.pgherd_backups.shop.backups), data.pgherd_ci_namespace.dev.revoked, length(data.pgherd_ci_trusts.dev.trusts),
  ])
}
`

// addresses are the resources of all.
var addresses = []string{
	`pgherd_allowlist_entry.home["127.0.0.0/8"]`, `pgherd_allowlist_entry.home["192.0.2.0/24"]`, "pgherd_backup_policy.shop",
	`pgherd_ci_trust.main["repo:acme/shop:**"]`, `pgherd_ci_trust.main["repo:acme/web:pull_request"]`, "pgherd_database.shop",
	"pgherd_extension.trigrams", `pgherd_member.guest["ann@example.com"]`, `pgherd_member.guest["bob@example.com"]`,
	"pgherd_query_timeouts.shop", `pgherd_role.reports["a"]`, `pgherd_role.reports["b"]`, "pgherd_webhook.hook",
}

func TestProvider(t *testing.T) {
	f := opened(t)
	f.qualifies()
	namespaces := check.Must(f.api.CINamespaces.List(t.Context()))(t)
	f.writes("main.tf", strings.Replace(all, "NAMESPACE", string(namespaces[0].ID), 1))
	f.plans(addresses...)
	f.applies()
	f.plans()
	shop := id.DatabaseID(f.attribute("pgherd_database.shop", "id"))
	f.told["the owner's password"] = f.attribute("pgherd_database.shop", "password")
	f.told["the secret of the webhook"] = f.attribute("pgherd_webhook.hook", "secret")
	f.writes("sources.tf", sources)
	f.applies()
	f.plans()
	if seen := f.runsWell("output", "-raw", "seen"); seen != "active ready developer true 2 true short none 0 false 2" {
		t.Errorf("the data sources say %q", seen)
	}
	check.NoError(t, os.Remove(filepath.Join(f.dir, "sources.tf")))
	f.applies()

	f.isChangedByOthers(shop, namespaces[0].ID)
	f.rotates(shop)
	f.keepsPasswordsOut(shop)
	f.isNotLost()
	f.isInterrupted()
	f.refusesWhatIsWrong(shop)
	f.imports(shop, namespaces[0].Name)
	f.isDestroyed()
	f.saysNoSecret()
}

// qualifies waits until extensions can be installed: the host tries them after its start.
func (f *folder) qualifies() {
	f.Helper()
	made := check.Must(f.api.Databases.Create(f.Context(), wire.CreateDatabase{Name: "trial", DisplayName: "Trial"}))(f)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		catalog := check.Must(f.api.Extensions.List(f.Context(), made.ID))(f)
		if !slices.ContainsFunc(catalog, func(e wire.Extension) bool { return !e.RestoreQualified }) {
			break
		}
		if time.Now().After(end) {
			f.Fatalf("extensions cannot be installed: %+v", catalog)
		}
	}
	asked := check.Must(f.api.Databases.Delete(f.Context(), made.ID))(f)
	check.Must(f.api.Operations.Await(f.Context(), asked.Operation.ID, 100*time.Millisecond))(f)
}

// isChangedByOthers has ten things changed by the API, one after the other, in an order that is another one each time: the plan
// is to undo exactly those.
func (f *folder) isChangedByOthers(shop id.DatabaseID, namespace id.NamespaceID) {
	f.Helper()
	ctx := f.Context()
	changes := map[string]func(address string) error{
		"pgherd_database.shop": func(string) error {
			label := []database.Environment{database.Production, database.Development, database.Other}[rand.IntN(3)]
			_, err := f.api.Databases.SetEnvironment(ctx, shop, wire.SetEnvironment{Environment: &label})
			return err
		},
		"pgherd_query_timeouts.shop": func(string) error { return f.chooses(shop, querytimeout.Balanced) },
		"pgherd_backup_policy.shop": func(string) error {
			_, err := f.api.Backups.SetPolicy(ctx, shop, wire.SetBackupPolicy{ScheduledBackup: database.Daily})
			return err
		},
		"pgherd_webhook.hook": func(a string) error { return f.api.Webhooks.Disable(ctx, id.WebhookID(f.attribute(a, "id"))) },
		`pgherd_role.reports["a"]`: func(a string) error {
			_, err := f.api.Roles.Rename(ctx, shop, id.RoleID(f.attribute(a, "id")), wire.RenameRole{DisplayName: "Other"})
			return err
		},
		`pgherd_role.reports["b"]`: func(a string) error { return f.revokes(shop, id.RoleID(f.attribute(a, "id"))) },
	}
	for _, a := range addresses {
		switch {
		case strings.HasPrefix(a, "pgherd_member."):
			changes[a] = func(a string) error {
				return f.api.Members.DeleteInvitation(ctx, shop, id.InvitationID(f.attribute(a, "id")))
			}
		case strings.HasPrefix(a, "pgherd_allowlist_entry."):
			changes[a] = func(a string) error {
				return f.api.Allowlist.Remove(ctx, shop, id.AllowlistEntryID(f.attribute(a, "id")))
			}
		case strings.HasPrefix(a, "pgherd_ci_trust."):
			changes[a] = func(a string) error {
				return f.api.CINamespaces.RemoveTrust(ctx, namespace, id.TrustID(f.attribute(a, "id")))
			}
		}
	}
	order := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return changes[a] == nil })
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i, address := range order[:10] {
		check.NoError(f, changes[address](address), address)
		f.plans(order[:i+1]...)
	}
	f.applies()
	f.plans()

	// What does not run says nothing of its extensions.
	_, err := f.api.Databases.SetLifecycle(ctx, shop, wire.SetLifecycle{Action: database.Stop})
	check.NoError(f, err)
	f.plans("pgherd_database.shop")
	f.applies()
	f.plans()
}

// chooses sets query timeouts, and waits until they are in force.
func (f *folder) chooses(shop id.DatabaseID, profile querytimeout.Profile) error {
	f.Helper()
	now, err := f.api.QueryTimeouts.Set(f.Context(), shop, wire.SetQueryTimeouts{Profile: profile})
	for err == nil && now.EffectiveProfile != profile {
		time.Sleep(100 * time.Millisecond)
		now, err = f.api.QueryTimeouts.Get(f.Context(), shop)
	}
	return err
}

func (f *folder) revokes(shop id.DatabaseID, of id.RoleID) error {
	f.Helper()
	change, err := f.api.Roles.Change(f.Context(), shop, of, wire.ChangeRole{Kind: core.Revocation, ConfirmDisconnect: true})
	for err == nil && change.Status != core.Completed {
		time.Sleep(100 * time.Millisecond)
		change, err = f.api.Roles.ContinueChange(f.Context(), shop, of, change.OperationID, wire.Disconnect{ConfirmDisconnect: true})
	}
	return err
}

// rotates gives what hangs on a text another secret, once.
func (f *folder) rotates(shop id.DatabaseID) {
	f.Helper()
	generations := func() (sum int64) {
		for _, r := range check.Must(f.api.Roles.List(f.Context(), shop, false))(f) {
			sum += r.CredentialGeneration
		}
		return sum
	}
	before, secret := generations(), f.attribute("pgherd_webhook.hook", "secret")
	f.plansWith([]string{"-var", "rotation=2026-11"}, "pgherd_webhook.hook", `pgherd_role.reports["a"]`, `pgherd_role.reports["b"]`)
	f.applies("-var", "rotation=2026-11")
	f.applies("-var", "rotation=2026-11")
	if now := generations(); now != before+2 {
		f.Errorf("two passwords were rotated %d times", now-before)
	}
	rotated := f.attribute("pgherd_webhook.hook", "secret")
	if rotated == secret || !strings.HasPrefix(rotated, "whsec_") {
		f.Error("the secret of the webhook was not rotated")
	}
	f.told["the rotated secret of the webhook"] = rotated
	f.applies() // without the text
	f.plans()
	if now := generations(); now != before+2 {
		f.Errorf("without the text, they were rotated %d times", now-before)
	}
}

// keepsPasswordsOut has a command get passwords, which are in no file.
func (f *folder) keepsPasswordsOut(shop id.DatabaseID) {
	f.Helper()
	const sum = `
ephemeral "pgherd_role_password" "reports" {
  database_id = pgherd_database.shop.id
  role_id     = pgherd_role.reports["a"].id
}
ephemeral "pgherd_login_password" "runtime" {
  database_id = pgherd_database.shop.id
  login       = "runtime"
}
resource "terraform_data" "sum" {
  provisioner "local-exec" {
    command = "printf '%s %s' \"$ROLE\" \"$LOGIN\" | sha256sum | cut -d' ' -f1 >sum"
    environment = {
      ROLE  = ephemeral.pgherd_role_password.reports.password
      LOGIN = ephemeral.pgherd_login_password.runtime.password
    }
  }
}
`
	f.writes("password.tf", sum)
	f.runsWell("plan", "-out=plan")
	f.runsWell("show", "plan")
	f.runsWell("apply", "plan")
	role := id.RoleID(f.attribute(`pgherd_role.reports["a"]`, "id"))
	f.secrets["the password of a role"] = check.Must(f.api.Roles.Reveal(f.Context(), shop, role))(f).Password
	f.secrets["the password of a login"] = check.Must(f.api.Logins.Reveal(f.Context(), shop, database.RuntimeLogin))(f).Password
	want := sha256.Sum256([]byte(f.secrets["the password of a role"] + " " + f.secrets["the password of a login"]))
	got := check.Must(os.ReadFile(filepath.Join(f.dir, "sum")))(f)
	if strings.TrimSpace(string(got)) != hex.EncodeToString(want[:]) {
		f.Error("the command has got other passwords")
	}
	check.NoError(f, os.Remove(filepath.Join(f.dir, "password.tf")))
	f.applies()
}

// isNotLost has plans that would delete the database, or make another one of its name. Nothing of them is done, not even to what
// belongs to it.
func (f *folder) isNotLost() {
	f.Helper()
	const database, unprotected = "pgherd_database.shop", "-var=protected=false"
	for _, more := range [][]string{nil, {unprotected}, {"-refresh=false"}, {"-refresh=false", unprotected}} {
		f.fails(nil, "keeps its name", append([]string{"apply", "-auto-approve", "-replace=" + database}, more...)...)
		f.fails(nil, "keeps its name", append([]string{"apply", "-auto-approve", "-var=label=Other"}, more...)...)
	}
	f.runsWell("taint", database)
	for _, more := range [][]string{nil, {unprotected}, {"-refresh=false"}, {"-refresh=false", unprotected}} {
		f.fails(nil, "keeps its name", append([]string{"apply", "-auto-approve"}, more...)...)
	}
	f.fails(nil, "keeps its name", "destroy", "-auto-approve") // which plans what the configuration has, to refresh it
	f.fails(nil, "deletion_protection is true", "destroy", "-auto-approve", "-refresh=false")
	f.runsWell("untaint", database)
	f.plans()
}

// imports forgets each resource and has it found again, by names and by IDs.
func (f *folder) imports(shop id.DatabaseID, namespace string) {
	f.Helper()
	const (
		trust = `pgherd_ci_trust.main["repo:acme/shop:**"]`
		role  = `pgherd_role.reports["a"]`
		bob   = `pgherd_member.guest["bob@example.com"]`
		home  = `pgherd_allowlist_entry.home["127.0.0.0/8"]`
	)
	for address, names := range map[string][]string{
		"pgherd_database.shop":       {"shop", string(shop)},
		role:                         {"shop/Reports a", string(shop) + "/" + f.attribute(role, "id")},
		bob:                          {"shop/bob@example.com", "shop/" + f.attribute(bob, "id")},
		"pgherd_webhook.hook":        {f.attribute("pgherd_webhook.hook", "id"), "https://127.0.0.1:9/in"},
		home:                         {"shop/127.0.0.0/8", string(shop) + "/" + f.attribute(home, "id")},
		"pgherd_extension.trigrams":  {"shop/pg_trgm"},
		"pgherd_query_timeouts.shop": {"shop"},
		"pgherd_backup_policy.shop":  {string(shop)},
		trust: {
			namespace + "/repo:acme/shop:**", f.attribute(trust, "namespace_id") + "/" + f.attribute(trust, "id"),
		},
	} {
		for _, name := range names {
			f.runsWell("state", "rm", address)
			f.runsWell("import", address, name)
		}
	}
	f.plans()
	f.runsWell("state", "rm", "pgherd_query_timeouts.shop")
	f.fails(nil, `no database that the key can see is called "nothing"`, "import", "pgherd_query_timeouts.shop", "nothing")
	f.fails(nil, "give DATABASE, and not", "import", "pgherd_query_timeouts.shop", "shop/short")
	f.applies()
}

// isDestroyed deletes everything, once it is protected no more.
func (f *folder) isDestroyed() {
	f.Helper()
	f.fails(nil, "deletion_protection is true", "destroy", "-auto-approve")
	f.plans() // not even a part was deleted
	f.applies("-var", "protected=false")
	f.runsWell("destroy", "-auto-approve", "-var", "protected=false")
	if left := check.Must(f.api.Databases.List().Page(f.Context(), apiclient.Page{}))(f).Data; len(left) != 0 {
		f.Errorf("there is %+v", left)
	}
	for _, n := range check.Must(f.api.CINamespaces.List(f.Context()))(f) {
		if left := check.Must(f.api.CINamespaces.ListTrusts(f.Context(), n.ID))(f); len(left) != 0 {
			f.Errorf("%s trusts %+v", n.Name, left)
		}
	}
}
