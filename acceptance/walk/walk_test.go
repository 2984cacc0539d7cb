// Package walk_test has people use the dashboard of a development host in a real browser, and holds every page that they come to
// to what a page has to be.
package walk_test

import (
	"context"
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/browser"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/eml"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
)

func TestMain(m *testing.M) {
	sample.Tests(3)
	os.Exit(m.Run())
}

// world is a development host, and a browser.
type world struct {
	*testing.T
	*stack.Dev
	browser *browser.Browser
	origin  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*check.Patience)
	defer cancel()
	d, err := stack.StartDev(ctx, stack.DevOptions{Dir: stacktest.Dir(t), Binary: stacktest.Build(t, "pgherd", stack.CrashPoints)})
	check.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), check.Patience)
		defer cancel()
		check.NoError(t, d.Stop(ctx))
	})
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(check.Must(os.ReadFile(d.Facts["PGHERD_CA_FILE"]))(t)) {
		t.Fatal("the CA's file has no certificate")
	}
	origin := d.Facts["PGHERD_DASHBOARD_URL"]
	return &world{T: t, Dev: d, browser: browser.Start(t, roots, origin), origin: origin}
}

// looks are in how many ways a page is looked at: in one where tests are sampled, and in all where they are whole.
func looks(t *testing.T) []browser.Look {
	if sample.Whole() {
		return browser.Looks
	}
	return sample.OneIn(t, len(browser.Looks), browser.Looks)
}

// open opens a page for somebody who is not logged in.
func (w *world) open(t *testing.T) *browser.Page {
	return w.browser.Open(t, w.origin, browser.Options{})
}

// mailTo is the link in the last mail to an address.
func (w *world) mailTo(t *testing.T, email string) (path string) {
	t.Helper()
	check.Eventually(t, "no mail has come to "+email, func() bool {
		mails := check.Must(eml.ReadFolder(w.Facts["PGHERD_MAILBOX_DIR"]))(t)
		for _, m := range slices.Backward(mails) {
			if _, rest, found := strings.Cut(m.Text, w.origin); found && strings.Contains(m.To, email) {
				path = strings.Fields(rest)[0]
				return true
			}
		}
		return false
	})
	return path
}

const password = "correct horse battery"

// Everybody who uses the dashboard comes to the pages that are theirs, and to none that is broken.
func TestWalk(t *testing.T) {
	w := newWorld(t)
	owner := w.open(t)
	t.Run("nobody", w.entrance)
	shop := w.firstSession(t, owner)
	t.Run("owner", func(t *testing.T) { w.ofOwner(t, owner, shop) })
	t.Run("operator", func(t *testing.T) { w.ofOperator(t, owner) })
	for _, role := range []string{"admin", "developer", "viewer"} {
		t.Run(role, func(t *testing.T) { w.ofMember(t, owner, shop, role) })
	}
}

// entrance is what somebody sees who is not logged in.
func (w *world) entrance(t *testing.T) {
	p := w.open(t)
	for _, path := range []string{
		"/login", "/forgotten", "/reset/none", "/invitation/none", "/login/code", "/link/none",
	} {
		p.Goto(path)
		p.Audit("outside"+strings.ReplaceAll(path, "/", " "), looks(t)...)
	}
	p.Expect(404, "/nothing")
	p.Goto("/nothing")
	p.Audit("nothing", looks(t)...)
	p.Goto("/databases/new")
	if p.Path() != "/login?next=%2Fdatabases%2Fnew" {
		t.Errorf("somebody who is not logged in comes to %s", p.Path())
	}
}

// firstSession is what a new user does: log in by the link of the development host, add a passkey, make a database and see it
// backed up. It returns the path of the database.
func (w *world) firstSession(t *testing.T, p *browser.Page) string {
	t.Helper()
	p.Goto(w.Facts["PGHERD_DASHBOARD_LOGIN_URL"])
	p.Click("Log in")
	p.Sees("No database yet")
	p.Audit("empty", looks(t)...)

	keys := p.Passkeys()
	p.Click("Security")
	p.Click("Add a passkey")
	p.Fill("Name of the new passkey", "Laptop")
	p.In("form[data-passkey=create]").Click("Add a passkey")
	p.Sees("The passkey was added.", "Laptop")
	if keys.Count() != 1 {
		t.Fatalf("the device holds %d passkeys", keys.Count())
	}
	p.Audit("security", looks(t)...)
	p.Click("Log out")
	p.Click("Log in with a passkey")
	p.Sees("No database yet")

	p.Click("New database")
	p.Audit("new database", looks(t)...)
	p.Fill("Name", "shop")
	p.Fill("Display name", "The shop")
	p.Press("Enter")
	p.Sees("The database is ready", "shown once")
	p.Audit("made", looks(t)...)
	p.Click("I have kept the password: to the database")
	p.Sees("The shop", "active")
	shop := p.Path()
	p.Goto(shop + "/backups")
	p.Click("Start a backup")
	p.Sees("The backup is queued.", "verified") // it comes by itself, as the page is open
	p.Audit("backups", looks(t)...)
	return shop
}

// ofOwner walks the pages of an owner.
func (w *world) ofOwner(t *testing.T, p *browser.Page, shop string) {
	p.Goto(shop + "/logins")
	p.Click("New login")
	p.Fill("Name", "Reports")
	p.Click("Make the login")
	p.Sees("Reports", "ready")
	p.Audit("role", looks(t)...)
	p.Click("Show the password")
	p.Sees("Password of Reports")
	p.Audit("password", looks(t)...)
	p.Goto("/keys")
	p.Click("New key")
	p.Fill("Name", "deploy")
	p.Click("Make the key")
	p.Sees("shown once")
	p.Audit("key once", looks(t)...)
	p.Goto("/previews")
	p.Click("development")
	p.Audit("namespace", looks(t)...)
	for _, path := range []string{
		"/", shop, shop + "/backups", shop + "/logins", shop + "/network", shop + "/extensions", shop + "/timeouts", shop + "/activity",
		shop + "/usage", shop + "/slow", "/account/usage",
		shop + "/members", shop + "/settings", "/databases/deleted", "/previews", "/webhooks", "/keys", "/account", "/security",
		"/prove",
	} {
		p.Goto(path)
		p.Audit("owner"+strings.ReplaceAll(strings.ReplaceAll(path, shop, " database"), "/", " "), looks(t)...)
	}
}

// ofOperator walks the operator's console. The first person of a development host is an operator, once a passkey proves it.
func (w *world) ofOperator(t *testing.T, p *browser.Page) {
	const why = "to see it work"
	p.Goto("/")
	p.Click("Operator")
	p.Sees("Fleet", "dev")
	p.Audit("fleet", looks(t)...)
	p.Click("dev")
	p.Sees("Connections sold")
	p.Audit("server", looks(t)...)
	p.Click("Check it now")
	p.Sees("What a check of the server finds")
	p.Audit("server checked", looks(t)...)
	p.Goto("/operator/check")
	p.Audit("fleet checked", looks(t)...)

	p.Goto("/operator/operations?state=all")
	p.Audit("orders", looks(t)...)
	p.Click("backup")
	p.Audit("order", looks(t)...)
	p.Goto("/operator/databases")
	p.Audit("records", looks(t)...)
	p.Click("The shop")
	p.Click("Enroll, or withdraw")
	p.Audit("record", looks(t)...)
	p.Goto("/operator/accounts")
	p.Audit("accounts", looks(t)...)
	p.Click("Invite somebody")
	form := p.In("details[open]")
	form.Fill("E-mail address", "new@example.org")
	form.Fill("Name", "New")
	form.Fill("Why", why)
	p.Click("Make the link")
	p.Sees("shown once")
	p.Audit("invited", looks(t)...)
	p.Click("To the account")
	p.Click("Change the plan and its exceptions")
	p.Audit("account of another", looks(t)...)
	form.Fill("Most databases", "3")
	form.Fill("Why", why)
	p.Click("Change the account")
	p.Sees("The account was changed.", "0 of 3")

	p.Goto("/operator/installation")
	p.Click("Begin it")
	p.Audit("installation", looks(t)...)
	form.Fill("Why", why)
	p.Click("Begin maintenance")
	p.Sees("Maintenance was changed.")
	p.Click("End it")
	form.Fill("Why", why)
	p.Click("End maintenance")
	p.Sees("Maintenance was changed.", "off")
	for _, path := range []string{"/operator/doctor", "/operator/audit", "/operator/keyring"} {
		p.Goto(path)
		p.Audit(strings.ReplaceAll(path[1:], "/", " "), looks(t)...)
	}
	p.Goto("/operator/doctor")
	p.Click("Examine dev")
	p.Sees("Nothing differs.")
	p.Audit("patient", looks(t)...)
}

// ofMember invites somebody, who takes part and walks the pages of the role.
func (w *world) ofMember(t *testing.T, owner *browser.Page, shop, role string) {
	email := role + "@example.org"
	owner.Goto(shop + "/members")
	owner.Click("Add somebody")
	owner.In("details[open]").Fill("E-mail address", email)
	owner.In("details[open]").Choose("Role", map[string]string{
		"admin": "admin: configures it, with its passwords", "developer": "developer: starts and deletes backups too",
		"viewer": "viewer: sees everything, downloads backups",
	}[role])
	owner.Click("Add the person")
	owner.Sees("Invitations", email)
	p := w.open(t)
	p.Goto(w.mailTo(t, email))
	p.Fill("Your name", "Somebody")
	p.Fill("Password", password)
	p.Click("Accept")
	p.Fill("E-mail address", email)
	p.Fill("Password", password)
	p.Click("Log in")
	p.Sees("The shop", role)
	parts := []string{"", "/backups", "/logins", "/network", "/extensions", "/activity"}
	if role == "admin" {
		parts = append(parts, "/settings")
	}
	for _, part := range parts {
		p.Goto(shop + part)
		p.Audit(role+" database"+strings.ReplaceAll(part, "/", " "), looks(t)...)
	}
	p.Expect(403, shop+"/members")
	p.Goto(shop + "/members")
	p.Audit(role+" refused", looks(t)...)
	for _, path := range []string{"/", "/keys", "/previews", "/account"} { // as everybody with a Free account
		p.Goto(path)
		p.Audit(role+" free"+strings.ReplaceAll(path, "/", " "), looks(t)...)
	}
	owner.Goto(shop + "/members")
	p.Goto(shop)
	p.Expect(404, shop)
	owner.In("section").Click("Remove")
	owner.Lacks(email)
	p.Sees("Nothing is here") // by itself
}
