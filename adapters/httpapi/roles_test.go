package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// lose loses the answers to a kind of command until the function that it returns is called.
func (w *roleWorld) lose(method string) (found func()) {
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == method {
			f.After = errors.New("the answer is lost")
		}
		return f
	})
	return func() { w.server.OnCall(nil) }
}

// The two encodings of one text make one label, on both routes that take one. So does a repetition that is encoded otherwise.
func TestLabelsAreComposed(t *testing.T) {
	const composed, decomposed = "caf\u00e9 \uac00", "cafe\u0301 \u1100\u1161"
	w := newRoleWorld(t)
	first := w.sendAs(w.key, "one", "POST", w.roles(), roleText(decomposed, "custom", 1)).is(200)
	if first.text("displayName") != composed {
		t.Errorf("made as %+q", first.text("displayName"))
	}
	again := w.sendAs(w.key, "one", "POST", w.roles(), roleText(composed, "custom", 1)).is(200)
	if again.text("roleId") != first.text("roleId") {
		t.Errorf("the repetition made %s", again.reply.text)
	}
	other := w.send("POST", w.roles(), roleText("Other", "custom", 1)).is(200).text("roleId")
	for _, taken := range []string{composed, decomposed} {
		w.send("POST", w.roles(), roleText(taken, "custom", 1)).refused(fault.ManagedRoleConflict, "")
		w.send("PATCH", w.roles(other), `{"displayName":"`+taken+`"}`).refused(fault.ManagedRoleConflict, "")
	}
	renamed := w.send("PATCH", w.roles(other), `{"displayName":"e\u0301"}`).is(200)
	if renamed.text("displayName") != "\u00e9" {
		t.Errorf("renamed to %+q", renamed.text("displayName"))
	}
}

func TestQueriesOfTheListOfRoles(t *testing.T) {
	w := newRoleWorld(t)
	w.send("GET", w.roles()+"?other=x", "").is(200)
	for _, query := range []string{
		"?includeRevoked", "?includeRevoked=", "?includeRevoked=false", "?includeRevoked=TRUE", "?includeRevoked=1",
		"?includeRevoked=true&includeRevoked=true", "?includeRevoked=true&includeRevoked=false",
	} {
		w.send("GET", w.roles()+query, "").refused(fault.ValidationError, "includeRevoked")
	}
}

func TestNamesOfLogins(t *testing.T) {
	w := newRoleWorld(t)
	for _, login := range []string{"Runtime", "custom", foreignID, "%00", "%72untime", "\xff", strings.Repeat("r", 500)} {
		w.send("POST", w.logins(login, "credentials"), "").refused(fault.RoleNotFound, "")
		w.send("POST", w.logins(login, "rotate"), cutOff).refused(fault.RoleNotFound, "")
	}
}

// What goes on is answered with 202, and what has ended with 200.
func TestStatusOfWhatGoesOn(t *testing.T) {
	w := newRoleWorld(t)
	found := w.lose("PrepareRole")
	w.sendAs(w.key, "one", "POST", w.roles(), roleText("Reports", "custom", 1)).refused(fault.AgentError, "")
	found()
	listed := w.send("GET", w.roles(), "").is(200).body["roles"].([]any)[0].(map[string]any)
	of := listed["roleId"].(string)
	w.send("POST", w.roles(of, "prepare"), "").is(202)
	w.send("POST", w.roles(of, "admit"), "").is(200)
	found = w.lose("ChangeLogin")
	change := w.sendAs(w.key, "turn", "POST", w.roles(of, "changes"), rotate).is(202).text("operationId")
	w.send("POST", w.roles(of, "changes", change), cutOff).is(202)
	found()
	w.send("GET", w.roles(of, "changes", change), "").is(200)
	w.send("POST", w.roles(of, "changes", change), cutOff).is(200)
	w.lose("ChangeLogin")
	w.send("POST", w.logins("owner", "rotate"), cutOff).is(202)
}
