package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// What a device has signed too late, or wrongly, does not end the session of who adds a passkey.
func TestAPasskeyThatIsNotAccepted(t *testing.T) {
	ada := newWorld(t).person("Ada", account.Pro)
	ada.post("/security/passkeys", url.Values{"challenge": {"old"}, "response": {"{}"}, "name": {"phone"}}).
		refused(http.StatusForbidden, "the passkey was not accepted: try again")
	ada.open("/security").sees("No passkey yet.")
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	ada.makes("shop")
	ada.open("/keys").sees("No key yet").press("Make the key", "Name", "deploy", "Ends", "soon").refused(400)
	text := ada.press("Make the key", "Name", "deploy", "Ends", "90d", "Only from these networks", "10.0.0.0/8\n192.0.2.0/24").
		sees("shown once").code("Key")
	ada.open("/keys").sees("deploy", "works", "the whole account").lacks(text).follow("deploy").sees("10.0.0.0/8, 192.0.2.0/24",
		"in 90 days")
	ada.press("Change", "Ends", "", "Only from these networks", "").sees("The key was changed.", "everywhere")
	if again := ada.press("Replace the key").code("Key"); again == text {
		t.Error("the key has the same text")
	}
	ada.open("/keys").press("Make the key", "Name", "one", "Reaches", "selected", "shop", "").sees("shown once")
	ada.open("/keys").follow("one").sees("chosen databases").press("Revoke the key", "Type one to confirm",
		"one").sees("The key works no more.")

	w.clock.Advance(person.Recent + time.Second)
	ada.open("/keys").press("Make the key", "Name", "late").sees("Prove that it is you")
	ada.press("Continue", "Password", "wrong").refused(403).lacks(`value="wrong"`)
	ada.press("Continue", "Password", password).sees("API keys").press("Make the key", "Name", "late").sees("shown once")
}

// A Free account has no API, and sees what would give it one.
func TestAFreeAccount(t *testing.T) {
	w := newWorld(t)
	bob := w.person("Bob", account.Free)
	bob.makes("shop")
	bob.open("/keys").sees("API access needs another plan").lacks("Make the key")
	bob.open("/previews").sees("API access needs another plan").lacks("Make the namespace")
	bob.post("/keys", map[string][]string{"label": {"a"}, "scope": {"full"}}).refused(403, "PLAN_API_ACCESS_REQUIRED")
	bob.open("/account").sees("Plan free", "API access no")
}

// Somebody whose account is suspended is told why, and gets no further than out.
func TestASuspendedAccount(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	must(w.cp.Operator.Suspend(t.Context(), ada.of.ID, "the bill of May is unpaid"))(t)
	for _, path := range []string{"/", "/keys", "/account"} {
		ada.open(path).refused(403, "ACCOUNT_SUSPENDED", "the bill of May is unpaid")
	}
	ada.post("/keys", map[string][]string{"label": {"a"}, "scope": {"full"}}).refused(403, "ACCOUNT_SUSPENDED")
	ada.press("Log out").sees("Log in")
	ada.open("/login").press("Log in", "E-mail address", ada.email, "Password", password).refused(403, "ACCOUNT_SUSPENDED")
	must(w.cp.Operator.Resume(t.Context(), ada.of.ID, "paid"))(t)
	ada.open("/").sees("Databases")
}

func TestPipelines(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	ada.open("/previews").press("Make the namespace", "Name", "web").sees("The namespace was made.", "web")
	space := ada.at.Path
	text := ada.press("Make a key").sees("shown once").code("Key")
	ada.open(space).sees("No preview lives")
	w.preview(text, "pr-42", 3)
	w.preview(text, "pr-7", 2)
	ada.open(space).sees("pr-7", "active", "in 2 hours", "pr-42", "in 3 hours").lacks("No preview lives")
	ada.open("/previews").sees("pr-42", "web").follow("pr-42").sees("active")
	bob := w.person("Bob", account.Pro)
	bob.open("/previews").press("Make the namespace", "Name", "app")
	bob.open("/previews").sees("No preview lives")
	ada.open(space).press("Revoke").sees("The key works no more.").lacks(text)
	ada.press("Trust it", "Issuer", "https://ci.example.org", "Audience", "pgherd", "Subject", "repo:acme/*").sees("repo:acme/*")
	ada.press("Remove").sees("No trust yet")
	ada.press("Revoke the namespace", "Type web to confirm", "web").sees("revoked")
	w.clock.Advance(2*time.Hour + time.Second)
	ada.open(space).lacks("Make a key").sees("pr-7", "lease ended")
}

// preview has a pipeline make a preview for so many hours.
func (w *world) preview(key, ref string, hours int) {
	w.Helper()
	ctx := context.Background()
	admitted := must(w.cp.Access.Admit(ctx, access.Attempt{Key: key, Class: ratelimit.Create}))(w)
	must(w.cp.Previews.Open(ctx, admitted.Caller, previews.Request{Ref: ref, TTLHours: &hours}))(w)
}

func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	ada.makes("shop")
	ada.open("/webhooks").sees("No endpoint yet").press("Add the endpoint", "Address", "http://hooks.test/pg").refused(400)
	secret := ada.press("Add the endpoint", "Address", "https://hooks.test/pg").code("https://hooks.test/pg")
	ada.follow("I have kept it").sees("enabled").lacks(secret)
	hook := ada.at.Path
	ada.press("Send a test event").sees("A test event is queued.")
	w.until(func() bool { return strings.Contains(textOf(ada.open(hook).page), "webhook.test") })
	w.settled()
	w.until(func() bool { return strings.Contains(ada.open(hook).text, "Send again") })
	ada.press("Send again").sees("The event is queued once more.")
	if again := ada.press("Make a new secret").code("https://hooks.test/pg"); again == secret {
		t.Error("the secret is the same")
	}
	ada.open(hook).press("Disable the endpoint").sees("disabled").lacks("Send a test event")
}

func TestHowSomebodyLogsIn(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	other := &someone{tab: w.tab(t), email: ada.email}
	other.logIn()

	ada.open("/security").press("Set up an app").sees("shown once")
	secret := ada.code("Secret")
	ada.press("Confirm", "Code of the app", "000000").refused(400)
	codes := strings.Fields(ada.press("Confirm", "Code of the app", codeOf(t, secret,
		w.clock.Now())).sees("Recovery codes").code("Recovery codes"))
	if other.open("/"); other.at.Path != "/login" {
		t.Error("another session has outlived the new factor")
	}
	other.open("/login").press("Log in", "E-mail address", other.email, "Password", password).sees("Second factor")
	other.press("Continue", "Code", "123456").refused(401)
	other.press("Continue", "Code", codes[0]).sees("Databases")
	ada.open("/security").sees("9").press("Make new codes").sees("New recovery codes")

	other.open("/security").pressIn("", "End all others").sees("All other sessions have ended.")
	if ada.open("/"); ada.at.Path != "/login" {
		t.Error("a session has outlived its end")
	}
	const next = "another horse battery"
	other.open("/security").press("Change the password", "New password", "short").refused(400)
	other.press("Change the password", "New password", next).sees("The password was changed")
	other.press("Remove the app").sees("not set up")
	other.press("Log out").sees("Log in")
	if other.open("/security"); other.at.Query().Get("next") != "/security" {
		t.Errorf("whoever is logged out is led to %s", other.at)
	}
	other.press("Log in", "E-mail address", other.email, "Password", next).sees("Security")
}

func TestAForgottenPassword(t *testing.T) {
	w := newWorld(t)
	ada := w.person("Ada", account.Pro)
	lost := w.tab(t)
	said := textOf(lost.open("/login").follow("Forgot your password?").press("Send the mail", "E-mail address",
		"nobody@example.org").page)
	if again := textOf(lost.open("/forgotten").press("Send the mail",
		"E-mail address", ada.email).page); withoutIDs(again) != withoutIDs(said) {
		t.Errorf("an address that is known is told apart:\n%s\n%s", said, again)
	}
	link := w.mailTo(ada.email)
	lost.open(link).press("Choose the password", "New password", "short").refused(400)
	lost.press("Choose the password", "New password", "another horse battery").sees("The password was changed")
	lost.open(link).press("Choose the password", "New password", "a third horse battery").refused(401, "does not work any more")
	lost.open("/login").press("Log in", "E-mail address", ada.email, "Password", password).refused(401)
	lost.press("Log in", "E-mail address", ada.email, "Password", "another horse battery").sees("Databases")
}

// codeOf is what an authenticator app shows that was given a secret.
func codeOf(t *testing.T, text string, now time.Time) string {
	t.Helper()
	secret, err := secretOf(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret.Code(now.Unix() / 30)
}
