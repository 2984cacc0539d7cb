package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// lose loses a kind of command, or its answers where it was carried out, until the function that it returns is called.
func (w *roleWorld) lose(method string, done bool) (found func()) {
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == method && done {
			f.After = errors.New("the answer is lost")
		} else if c.Method == method {
			f.Before = errors.New("the command is lost")
		}
		return f
	})
	return func() { w.server.OnCall(nil) }
}

func TestMakingARole(t *testing.T) {
	w := newRoleWorld(t)
	w.send("GET", w.roles(), "").is(200, "roles")
	first := w.sendAs(w.key, "one", "POST", w.roles(), roleText(" Reports ", "read_only", 2)).is(200, roleFields...)
	compact := strings.ReplaceAll(string(w.database.ID), "-", "")
	for name, want := range map[string]string{
		"profile": "custom", "displayName": "Reports", "accessProfile": "read_only", "status": "ready",
		"username": "pgh_" + compact + "_c1",
	} {
		if got := first.text(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]int{"ordinal": 1, "connectionLimit": 2, "generation": 1, "credentialGeneration": 1} {
		if got := first.number(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	again := w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "read_only", 2)).is(200)
	if again.reply.text != first.reply.text {
		t.Errorf("the repeated request got\n%s\nthe first\n%s", again.reply.text, first.reply.text)
	}
	w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "read_only", 3)).refused(fault.ManagedRoleConflict, "")
	w.send("POST", w.roles(), roleText("Reports", "custom", 1)).refused(fault.ManagedRoleConflict, "")
	w.send("POST", w.roles(), roleText("", "custom", 1)).refused(fault.ValidationError, "displayName")
	w.send("POST", w.roles(), roleText("a\u0000b", "custom", 1)).refused(fault.ValidationError, "displayName")
	w.send("POST", w.roles(), roleText("B", "owner", 1)).refused(fault.ValidationError, "accessProfile")
	w.send("POST", w.roles(), roleText("B", "custom", 0)).refused(fault.ValidationError, "connectionLimit")
	w.send("POST", w.roles(), roleText("B", "custom", 100_000)).refused(fault.ValidationError, "connectionLimit")
	w.send("POST", w.roles(), strings.Replace(roleText("B", "custom", 1), ":1}", ":1.5}", 1)).
		refused(fault.ValidationError, "connectionLimit")
	if listed := w.listed(); listed["operationId"] != nil || len(listed) != len(roleFields)+1 {
		t.Errorf("listed as %v", listed)
	}
}

// The two encodings of one text make one label, on both routes that take one. So does a repetition that is encoded otherwise.
func TestLabelsAreComposed(t *testing.T) {
	const composed, decomposed = "caf\u00e9 \uac00", "cafe\u0301 \u1100\u1161"
	w := newRoleWorld(t)
	first := w.sendAs(w.key, "one", "POST", w.roles(), roleText(decomposed, "custom", 1)).is(200, roleFields...)
	if first.text("displayName") != composed {
		t.Errorf("made as %+q", first.text("displayName"))
	}
	again := w.sendAs(w.key, "one", "POST", w.roles(), roleText(composed, "custom", 1)).is(200, roleFields...)
	if again.text("roleId") != first.text("roleId") {
		t.Errorf("the repetition made %s", again.reply.text)
	}
	other := w.makes("Other").text("roleId")
	for _, taken := range []string{composed, decomposed} {
		w.send("POST", w.roles(), roleText(taken, "custom", 1)).refused(fault.ManagedRoleConflict, "")
		w.send("PATCH", w.roles(other), `{"displayName":"`+taken+`"}`).refused(fault.ManagedRoleConflict, "")
	}
	renamed := w.send("PATCH", w.roles(other), `{"displayName":"e\u0301"}`).is(200, "roleId", "displayName")
	if renamed.text("displayName") != "\u00e9" {
		t.Errorf("renamed to %+q", renamed.text("displayName"))
	}
}

func TestListOfRoles(t *testing.T) {
	w := newRoleWorld(t)
	made := w.makes("Reports")
	w.makes("Other")
	w.send("POST", w.roles(made.text("roleId"), "changes"), revoke).is(200)
	for query, want := range map[string]int{"": 1, "?includeRevoked=true": 2, "?other=x": 1} {
		list := w.send("GET", w.roles()+query, "").is(200, "roles").body["roles"].([]any)
		if len(list) != want {
			t.Errorf("%q lists %d roles, want %d", query, len(list), want)
		}
		if first := list[0].(map[string]any); want == 2 && first["ordinal"] != 1.0 {
			t.Errorf("the first is %v", first)
		}
	}
	for _, query := range []string{
		"?includeRevoked", "?includeRevoked=", "?includeRevoked=false", "?includeRevoked=TRUE", "?includeRevoked=1",
		"?includeRevoked=true&includeRevoked=true", "?includeRevoked=true&includeRevoked=false",
	} {
		w.send("GET", w.roles()+query, "").refused(fault.ValidationError, "includeRevoked")
	}
}

func TestInterruptedMaking(t *testing.T) {
	w := newRoleWorld(t)
	found := w.lose("PrepareRole", false)
	w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "custom", 1)).refused(fault.AgentError, "")
	found()
	reserved := w.listed()
	if reserved["status"] != "reserved" {
		t.Fatalf("listed as %v", reserved)
	}
	made := reserved["roleId"].(string)
	w.send("POST", w.roles(made, "admit"), "").refused(fault.ManagedRoleConflict, "")
	if p := w.send("POST", w.roles(made, "prepare"), "").is(202, setupFields...); p.text("status") != "sql_ready" {
		t.Errorf("prepared: %s", p.reply.text)
	}
	w.server.SetConnect(reserved["username"].(string), false)
	refusal := w.send("POST", w.roles(made, "admit"), "").refused(fault.ConnectGrantRequired, "")
	e := refusal.body["error"].(map[string]any)
	if e["databaseName"] != "shop-1" || e["username"] != reserved["username"] ||
		!strings.HasPrefix(e["grantSql"].(string), `GRANT CONNECT ON DATABASE "shop-1" TO`) {
		t.Errorf("refused with %v", e)
	}
	w.server.SetConnect(reserved["username"].(string), true)
	for range 2 {
		if a := w.send("POST", w.roles(made, "admit"), "").is(200, setupFields...); a.text("status") != "ready" {
			t.Errorf("admitted: %s", a.reply.text)
		}
	}
	w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "custom", 1)).is(200, roleFields...)
	w.send("POST", w.roles(made, "prepare"), "").refused(fault.ManagedRoleConflict, "")
}

func TestLabelAndPasswordOfARole(t *testing.T) {
	w := newRoleWorld(t)
	made := w.makes("Reports")
	of := made.text("roleId")
	renamed := w.send("PATCH", w.roles(of), `{"displayName":"Statements"}`).is(200, "roleId", "displayName")
	if renamed.text("displayName") != "Statements" || renamed.text("roleId") != of {
		t.Errorf("renamed: %s", renamed.reply.text)
	}
	shown := w.send("POST", w.roles(of, "credentials"), "").is(200, slices.Concat(roleFields, wayFields)...)
	if shown.text("host") != "db.example" || shown.number("port") != 6432 || shown.text("database") != "shop-1" ||
		shown.body["tlsRequired"] != true || !w.server.LogInDirectly("shop-1", made.text("username"), shown.text("password")) {
		t.Errorf("shown: %s", shown.reply.text)
	}
	w.server.DriftPassword(made.text("username"), "another")
	w.send("POST", w.roles(of, "credentials"), "").refused(fault.ManagedRoleConflict, "")
}

func TestChangesOfARole(t *testing.T) {
	w := newRoleWorld(t)
	of := w.makes("Reports").text("roleId")
	changes := w.roles(of, "changes")
	for body, field := range map[string]string{
		`{"kind":"rotate"}`:                               "confirmDisconnect",
		`{"kind":"rotate","confirmDisconnect":false}`:     "confirmDisconnect",
		`{"kind":"rotate","confirmDisconnect":"true"}`:    "confirmDisconnect",
		`{"kind":"rotate","confirmDisconnect":1}`:         "confirmDisconnect",
		`{"kind":"rotate","confirmDisconnect":null}`:      "confirmDisconnect",
		`{"confirmDisconnect":true}`:                      "kind",
		`{"kind":"expire","confirmDisconnect":true}`:      "kind",
		`{"kind":"remove","confirmDisconnect":true}`:      "kind",
		`{"kind":"Rotate","confirmDisconnect":true}`:      "kind",
		strings.Replace(rotate, "}", `,"roleId":"x"}`, 1): "roleId",
	} {
		w.send("POST", changes, body).refused(fault.ValidationError, field)
	}
	done := w.sendAs(w.key, "turn", "POST", changes, rotate).is(200, changeFields...)
	if done.text("roleId") != of || done.text("profile") != "custom" || done.text("kind") != "rotate" ||
		done.text("status") != "completed" || done.number("credentialGeneration") != 2 {
		t.Errorf("rotated: %s", done.reply.text)
	}
	one := w.roles(of, "changes", done.text("operationId"))
	for _, again := range []answered{
		w.sendAs(w.key, "turn", "POST", changes, rotate), w.send("GET", one, ""), w.send("POST", one, cutOff),
	} {
		if again.is(200); again.reply.text != done.reply.text {
			t.Errorf("got %s, want %s", again.reply.text, done.reply.text)
		}
	}
	w.sendAs(w.key, "turn", "POST", changes, revoke).refused(fault.ManagedRoleConflict, "")
	w.send("POST", one, `{"confirmDisconnect":false}`).refused(fault.ValidationError, "confirmDisconnect")
	w.send("GET", w.roles(of, "changes", foreignID), "").refused(fault.OperationNotFound, "")
	w.send("POST", w.roles(of, "changes", foreignID), cutOff).refused(fault.OperationNotFound, "")
	w.send("POST", w.roles(foreignID, "changes"), rotate).refused(fault.RoleNotFound, "")
}

func TestPendingChange(t *testing.T) {
	w := newRoleWorld(t)
	of := w.makes("Reports").text("roleId")
	found := w.lose("ChangeLogin", true)
	pending := w.send("POST", w.roles(of, "changes"), rotate).is(202, changeFields...)
	if pending.text("status") != "pending" || pending.number("credentialGeneration") != 2 {
		t.Errorf("pending: %s", pending.reply.text)
	}
	if r := w.listed(); r["status"] != "updating" || r["operationId"] != pending.text("operationId") {
		t.Errorf("listed as %v", r)
	}
	one := w.roles(of, "changes", pending.text("operationId"))
	w.send("POST", one, cutOff).is(202, changeFields...)
	w.send("POST", w.roles(of, "credentials"), "").refused(fault.ManagedRoleConflict, "")
	w.send("POST", w.roles(of, "changes"), revoke).refused(fault.ManagedRoleConflict, "")
	found()
	if read := w.send("GET", one, "").is(200, changeFields...); read.text("status") != "pending" {
		t.Errorf("reading went on with the change: %s", read.reply.text)
	}
	if done := w.send("POST", one, cutOff).is(200, changeFields...); done.text("status") != "completed" {
		t.Errorf("replayed: %s", done.reply.text)
	}
	if r := w.listed(); r["status"] != "ready" || r["operationId"] != nil || r["credentialGeneration"] != 2.0 {
		t.Errorf("listed as %v", r)
	}
}

func TestDeletingARole(t *testing.T) {
	w := newRoleWorld(t)
	made := w.makes("Reports")
	of, username := made.text("roleId"), made.text("username")
	for _, body := range []string{`{}`, `{"confirm":false}`, `{"confirm":"true"}`} {
		w.send("POST", w.roles(of, "delete"), body).refused(fault.ValidationError, "confirm")
	}
	w.send("DELETE", w.roles(of), "").refused(fault.ManagedRoleConflict, "")
	found := w.lose("ChangeLogin", true)
	p := w.send("POST", w.roles(of, "delete"), confirm).is(202, "roleId", "status", "phase", "operationId")
	if p.text("status") != "pending" || p.text("phase") != "revoke" || w.listed()["operationId"] != p.text("operationId") {
		t.Errorf("pending: %s", p.reply.text)
	}
	found()
	for range 25 {
		w.server.AddDependency(username, role.Dependency{
			Kind: role.GrantDependency, ObjectType: "table", Schema: "public", Name: "orders", Identity: "public.orders",
		})
	}
	listed := w.send("POST", w.roles(of, "delete"), confirm).refused(fault.RoleDependencies, "").body["error"].(map[string]any)
	dependencies, _ := listed["dependencies"].([]any)
	if len(dependencies) != role.MaxDependencies || listed["truncated"] != true {
		t.Fatalf("refused with %v", listed)
	}
	if d := dependencies[0].(map[string]any); len(d) != 5 || d["kind"] != "grant" || d["identity"] != "public.orders" {
		t.Errorf("the first dependency is %v", d)
	}
	brief := w.send("DELETE", w.roles(of), "").refused(fault.RoleDependencies, "").body["error"].(map[string]any)
	if _, has := brief["dependencies"]; has || w.listed()["status"] != "revoked" {
		t.Errorf("refused with %v; listed as %v", brief, w.listed())
	}
	w.server.DropDependencies(username)
	found = w.lose("RemoveRole", true)
	if p = w.send("POST", w.roles(of, "delete"), confirm).is(202, "roleId", "status", "phase"); p.text("phase") != "remove" {
		t.Errorf("pending: %s", p.reply.text)
	}
	if p = w.send("DELETE", w.roles(of), "").is(202, "roleId", "status"); p.text("status") != "pending" {
		t.Errorf("pending: %s", p.reply.text)
	}
	found()
	for _, done := range []answered{
		w.send("DELETE", w.roles(of), ""), w.send("POST", w.roles(of, "delete"), confirm), w.send("DELETE", w.roles(of), ""),
	} {
		if done.is(200, "roleId", "status"); done.text("status") != "removed" || done.text("roleId") != of {
			t.Errorf("removed: %s", done.reply.text)
		}
	}
	if list := w.send("GET", w.roles()+"?includeRevoked=true", "").is(200).body["roles"].([]any); len(list) != 0 {
		t.Errorf("still listed: %v", list)
	}
}

func TestRoleThatIsNotThere(t *testing.T) {
	w := newRoleWorld(t)
	for _, c := range []struct{ method, below, body string }{
		{"PATCH", "", `{"displayName":"B"}`}, {"DELETE", "", ""}, {"POST", "credentials", ""}, {"POST", "changes", rotate},
		{"GET", "changes/" + foreignID, ""}, {"POST", "changes/" + foreignID, cutOff}, {"POST", "delete", confirm},
		{"POST", "prepare", ""}, {"POST", "admit", ""},
	} {
		path := strings.TrimSuffix(w.roles(foreignID, c.below), "/")
		w.send(c.method, path, c.body).refused(fault.RoleNotFound, "")
		if c.body == "" && c.method != "GET" {
			w.send(c.method, path, "{}").refused(fault.ValidationError, "body")
		}
	}
}

func TestRateClassesOfRoles(t *testing.T) {
	reveal := ratelimit.Limit{Count: 3, Period: time.Minute}
	w := newRoleWorld(t, func(c *controlplane.Config) { c.Limits[ratelimit.Reveal] = reveal })
	of := w.makes("Reports").text("roleId")
	w.send("POST", w.roles(of, "credentials"), "").is(200)
	w.send("POST", w.logins("runtime", "credentials"), "").is(200)
	w.send("POST", w.logins("readonly", "credentials"), "").is(200)
	last := w.send("POST", w.roles(of, "credentials"), "").refused(fault.RateLimited, "")
	if last.Header.Get("Retry-After") != "20" || last.Header.Get(headerRateLimit) != "3" {
		t.Errorf("the headers are %v", last.Header)
	}
	w.send("GET", w.roles(), "").is(200)
}

// A credential whose validity ends says when, and can then be neither revealed nor rotated.
func TestValidityOfACredential(t *testing.T) {
	w := newRoleWorld(t)
	validity := time.Hour
	_, err := w.use.Operator.ChangeAccount(t.Context(), w.account.ID, func(a *account.Account) {
		a.CredentialValidity = &validity
	})
	w.ok(err)
	made := w.send("POST", w.roles(), roleText("Reports", "custom", 1)).is(200, append(roleFields, "credentialExpiresAt")...)
	want := w.clock.Now().UTC().Add(validity).Truncate(time.Microsecond).Format(time.RFC3339Nano)
	if got := made.text("credentialExpiresAt"); got != want {
		t.Errorf("it ends at %s, want %s", got, want)
	}
	w.clock.Advance(validity)
	w.send("POST", w.roles(made.text("roleId"), "credentials"), "").refused(fault.ManagedRoleConflict, "")
	w.send("POST", w.roles(made.text("roleId"), "changes"), rotate).refused(fault.ManagedRoleConflict, "")
}
