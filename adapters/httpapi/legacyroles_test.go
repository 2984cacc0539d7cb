package httpapi

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// newLegacyWorld is about a database with a single login that is activated.
func newLegacyWorld(t *testing.T) *roleWorld {
	t.Helper()
	w := newRoleWorld(t)
	made := w.send("POST", "/api/v1/databases", `{"name":"single","displayName":"Shop","roleModel":"single_login"}`).is(201)
	w.database.ID, w.database.Name, w.list = id.DatabaseID(made.text("id")), "single", "legacy-roles"
	check.NoError(t, w.use.Operator.SetFeature(t.Context(), "legacy-roles", true))
	check.NoError(t, w.use.Operator.ActivateLegacyRoles(t.Context(), w.database.ID))
	return w
}

// The way of a legacy role through every route, with the status of each answer.
func TestLegacyRolesByHTTP(t *testing.T) {
	w := newLegacyWorld(t)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		f.Before = &command.Refusal{Reason: command.ReasonUnfinished}
		return f
	})
	half := w.send("POST", w.roles("opt-in"), "").is(202)
	w.server.OnCall(nil)
	stands := w.send("POST", w.roles("opt-in"), "").is(200)
	if half.text("status")+stands.text("status") != "reservedactive" || half.text("overlayId") != stands.text("overlayId") {
		t.Errorf("%s, then %s", half.reply.text, stands.reply.text)
	}

	w.send("POST", w.roles(), roleText("Reports", "custom", 21)).refused(fault.ValidationError, "connectionLimit")
	made := w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "read_only", 20)).is(200)
	w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "custom", 20)).refused(fault.LegacyRoleConflict, "")
	of := made.text("roleId")
	w.send("POST", w.roles(of, "admit"), "").refused(fault.LegacyRoleConflict, "")
	prepared := w.send("POST", w.roles(of, "prepare"), "").is(202)
	missing := w.send("POST", w.roles(of, "admit"), "").refused(fault.ConnectGrantRequired, "")
	told, _ := missing.body["error"].(map[string]any)
	if told["grantSql"] != prepared.text("grantSql") || told["username"] != made.text("username") ||
		told["databaseName"] != "single" {
		t.Errorf("prepared %s, refused %s", prepared.reply.text, missing.reply.text)
	}
	w.server.SetConnect(made.text("username"), true)
	found := w.lose("AdmitRole")
	w.send("POST", w.roles(of, "admit"), "").refused(fault.AgentError, "")
	found()
	if got := w.send("POST", w.roles(of, "reconcile"), "").is(200); got.text("status") != "ready" || got.text("roleId") != of {
		t.Errorf("reconciled is %s", got.reply.text)
	}
	w.send("POST", w.roles(of, "admit"), "").is(200)
	if w.send("POST", w.roles(of, "credentials"), "").is(200).text("password") == "" {
		t.Error("no password")
	}
	found = w.lose("ChangeLogin")
	change := w.send("POST", w.roles(of, "changes"), rotate).is(202).text("operationId")
	w.send("POST", w.roles(of, "changes", change), cutOff).is(202)
	found()
	w.send("GET", w.roles(of, "changes", change), "").is(200)
	w.send("POST", w.roles(of, "changes", change), cutOff).is(200)

	found = w.lose("ChangeLogin")
	going := w.send("DELETE", w.roles(of), "").is(202)
	if going.text("phase") != "revoke" || going.text("operationId") == "" {
		t.Errorf("being revoked: %s", going.reply.text)
	}
	found()
	if gone := w.send("DELETE", w.roles(of), "").is(200); gone.text("status") != "removed" {
		t.Errorf("deleted: %s", gone.reply.text)
	}
	w.send("POST", w.roles(of, "reconcile"), "").refused(fault.RoleNotFound, "")
	if left := w.send("GET", w.roles()+"?includeRevoked=true", "").is(200).body["roles"].([]any); len(left) != 0 {
		t.Errorf("listed is %v", left)
	}
}
