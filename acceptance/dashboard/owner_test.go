package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

// Everything that an owner does with a database, by the forms of its pages.
func TestAnOwnerOfADatabase(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)

	ada.open("/").sees("No database yet").follow("New database")
	create := ada.form("Create the database", "")
	create.fields.Set("name", "Shop")
	ada.submit(create).refused(400, "lower-case").lacks("shown once")
	create = ada.form("Create the database", "")
	create.fields.Set("name", "shop")
	create.fields.Set("environment", "production")
	secret := ada.submit(create).sees("The database is ready").code("Password of shop")
	if again := ada.submit(create).sees("The database is ready").code("Password of shop"); again != secret {
		t.Error("the same form again has made another database")
	}
	shop := ada.follow("I have kept the password: to the database").sees("active", "production", "owner").lacks(secret).at.Path
	ada.open("/").sees("shop", "owner")

	ada.open(shop + "/backups").sees("No backup yet").press("Start a backup").sees("The backup is queued.")
	w.settled()
	ada.open(shop+"/backups").sees("manual", "verified")
	ada.press("Change", "Backups", "daily").sees("The schedule was changed.")
	ada.open(shop).sees("every day", "backup", "succeeded").follow("backup").sees("Operation: backup", "Result")

	ada.open(shop+"/network").press("Let it connect", "Network", "203.0.113.0/33").refused(400,
		"must be an IPv4 or IPv6 network").has(`value="203.0.113.0/33"`)
	ada.press("Let it connect", "Network", "203.0.113.0/24", "Note", "office").sees("The network may connect.", "203.0.113.0/24",
		"office")
	ada.pressIn("203.0.113.0/24", "Remove").sees("from everywhere")

	ada.open(shop+"/timeouts").press("Set the profile", "Profile", "standard")
	w.settled()
	ada.open(shop+"/timeouts").sees("Wanted standard", "Confirmed by the server standard", "1 minute")
	ada.open(shop+"/activity").sees("database created", "Ada")

	ada.open(shop +
		"/settings").press("Stop").sees("Nobody can connect until it is started.").press("Start").press("Restart").sees("Restart")
	ada.press("Change", "Environment", "staging").sees("The environment was changed.")
	ada.press("Clone", "Name", "copy", "As it was at", "2026-03-01T12:30:00").refused(400, "needs its offset from UTC")
	ada.press("Clone", "Name", "copy", "As it was at", w.clock.Now().Format(time.RFC3339)).sees("The clone is being made",
		"Password of copy")
	w.settled()
	ada.open("/").sees("copy")

	ada.open(shop+"/settings").press("Delete the database", "Type shop to confirm", "shop!").refused(400, "type shop to confirm")
	ada.press("Delete the database", "Type shop to confirm", "shop").sees("Operation: delete")
	w.settled()
	ada.open("/").lacks(">shop<").follow("Deleted databases").sees("shop").press("Recover").sees("Operation: recover")
	w.settled()
	ada.open(shop).sees("active")
}

func TestTheFilesOfABackup(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	single := ada.makes("single", "Logins", "single_login")
	ada.open(single + "/backups").press("Start a backup")
	w.settled()
	ada.open(single + "/backups")
	file := ada.firstLink("/backups/")
	ada.open(file + "/download")
	if ada.status != 200 || ada.text == "" || strings.Contains(ada.text, "<html") {
		t.Errorf("the download: status %d, %d bytes", ada.status, len(ada.text))
	}
	ada.open(file+"/certificate").says("keyId", "signature")
	ada.open(file)
	ada.press("Restore the database", "Type single to confirm", "single").sees("The restore is queued.")
	w.settled()
	ada.open(file).press("Clone", "Name", "second").sees("Password of second")
	w.settled()
	name := file[strings.LastIndexByte(file, '/')+1:]
	ada.open(file).press("Delete the backup", "Type "+name+" to confirm", name).sees("The backup is deleted.")
	ada.open(file).refused(404)
}

// The logins of a database: those that came with it, and additional ones.
func TestLogins(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	shop := ada.makes("shop")
	ada.open(shop+"/logins").pressIn("_rt", "Show the password").sees("Password of pgh_")
	runtime := ada.code("Password")
	ada.open(shop+"/logins").pressIn("_rt", "Rotate the password")
	w.settled()
	if again := ada.open(shop+"/logins").pressIn("_rt", "Show the password").code("Password"); again == runtime {
		t.Error("the password of the runtime login was not rotated")
	}
	ada.open(shop+"/logins").pressIn("migrations", "Rotate the password").sees("New password of shop").code("Password")

	ada.open(shop+"/logins").press("Make the login", "Name", "Reports", "Connections", "many").refused(400, "is a number")
	ada.press("Make the login", "Name", "Reports", "Connections", "2").sees("Reports", "ready")
	reports := ada.at.Path
	ada.press("Show the password").sees("Password of Reports").code("Password")
	ada.open(reports).press("Rename", "Name", "Figures").sees("The login has another name.", "Figures")
	ada.press("Rotate the password").sees("The password is rotated")
	w.settled()
	ada.open(reports).press("Shut the login out")
	w.settled()
	ada.open(reports).sees("revoked").press("Remove the login", "Type Figures to confirm", "Figures").sees("The login is removed")
	ada.open(reports).refused(404)
}

// A database with a single login takes additional ones once an operator has activated that.
func TestLoginsOfASingleLogin(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	single := ada.makes("single", "Logins", "single_login")
	ada.open(single + "/logins").lacks("Additional logins")
	w.ok(w.cp.Operator.ActivateLegacyRoles(context.Background(), id.DatabaseID(strings.TrimPrefix(single, "/databases/"))))
	ada.open(single + "/logins").press("Prepare the database").sees("The database takes additional logins.")
	ada.press("Make the login", "Name", "Reports", "Connections", "2").sees("reserved")
	ada.press("Make it on the server").sees("sql ready",
		"GRANT CONNECT").press("Look at it on the server").sees("The login was looked at.")
	ada.press("Let it log in")
	ada.press("Remove the login", "Type Reports to confirm", "Reports")
}

func TestMembersAndInvitations(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("Ada", account.Pro), w.person("Bob", account.Free)
	shop := ada.makes("shop")
	bob.open(shop).refused(404)
	ada.open(shop+"/members").press("Add the person", "E-mail address", bob.email, "Role", "viewer").sees(bob.email, "viewer")
	bob.open("/").sees("shop", "viewer").open(shop).sees("Your role viewer")
	ada.pressIn(bob.email, "Change the role", "Role", "admin").sees("The role was changed.")
	bob.open(shop + "/settings").sees("Restart").lacks("Delete the database")

	ada.open(shop+"/members").press("Add the person", "E-mail address", "carol@example.org", "Role",
		"developer").sees("Invitations", "carol@example.org")
	first := w.mailTo("carol@example.org")
	ada.press("Send again").sees("The invitation was sent again")
	carol := &someone{tab: w.tab(t), email: "carol@example.org"}
	w.until(func() bool { return w.mailTo(carol.email) != first })
	carol.open(first).press("Accept", "Your name", "Carol", "Password", password).refused(404)
	carol.open(w.mailTo(carol.email)).press("Accept").refused(400)
	carol.press("Accept", "Your name", "Carol", "Password", password).sees("Log in")
	carol.press("Log in", "E-mail address", carol.email, "Password", password).sees("shop", "Your role developer")
	ada.open(shop+"/members").press("Add the person", "E-mail address",
		"dave@example.org").press("Take back").lacks("dave@example.org")
	ada.pressIn(bob.email, "Remove").lacks(bob.email)
	bob.open(shop).refused(404)
	bob.open("/").sees("No database yet")
}

// firstLink is the first link of the page whose address has a part.
func (b *tab) firstLink(part string) string {
	b.Helper()
	for node := range b.page.Descendants() {
		if node.Data == "a" && strings.Contains(attribute(node, "href"), part) {
			return attribute(node, "href")
		}
	}
	b.Fatalf("%s has no link with %s:\n%s", b.at, part, textOf(b.page))
	return ""
}
