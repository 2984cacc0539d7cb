package httpapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestManagedLogins(t *testing.T) {
	w := newRoleWorld(t)
	list := w.send("GET", w.logins(), "").is(200, "roles").body["roles"].([]any)
	names := []string{}
	for _, l := range list {
		login := l.(map[string]any)
		names = append(names, login["login"].(string))
		if len(login) != len(loginFields) || login["credentialGeneration"] != 1.0 {
			t.Errorf("listed as %v", login)
		}
	}
	if !slices.Equal(names, []string{"owner", "runtime", "readonly"}) {
		t.Errorf("listed %v", names)
	}
	for _, login := range []string{"runtime", "readonly"} {
		shown := w.send("POST", w.logins(login, "credentials"), "").is(200, slices.Concat(loginFields, wayFields)...)
		if !w.server.LogInDirectly("shop-1", shown.text("username"), shown.text("password")) {
			t.Errorf("the shown password of %s does not work", login)
		}
	}
	for _, login := range []string{"owner", "Runtime", "custom", foreignID, "%00", "%72untime", "\xff", strings.Repeat("r", 500)} {
		w.send("POST", w.logins(login, "credentials"), "").refused(fault.RoleNotFound, "")
		if login != "owner" {
			w.send("POST", w.logins(login, "rotate"), cutOff).refused(fault.RoleNotFound, "")
		}
	}
	w.send("POST", w.logins("runtime", "credentials"), "{}").refused(fault.ValidationError, "body")
}

func TestRotationOfManagedLogins(t *testing.T) {
	w := newRoleWorld(t)
	rotated := []string{"operationId", "login", "kind", "status", "credentialGeneration"}
	for body, field := range map[string]string{
		`{}`: "confirmDisconnect", `{"confirmDisconnect":false}`: "confirmDisconnect", rotate: "kind",
	} {
		w.send("POST", w.logins("runtime", "rotate"), body).refused(fault.ValidationError, field)
	}
	done := w.sendAs(w.key, "r", "POST", w.logins("runtime", "rotate"), cutOff).is(200, rotated...)
	if done.text("login") != "runtime" || done.text("kind") != "rotate" || done.text("status") != "completed" ||
		done.number("credentialGeneration") != 2 {
		t.Errorf("rotated: %s", done.reply.text)
	}
	if shown := w.send("POST", w.logins("runtime", "credentials"), "").is(200); shown.number("credentialGeneration") != 2 {
		t.Errorf("shown: %s", shown.reply.text)
	}

	found := w.lose("ChangeLogin", true)
	if p := w.sendAs(w.key, "o", "POST", w.logins("owner", "rotate"), cutOff).is(202, rotated...); p.text("status") != "pending" {
		t.Errorf("pending: %s", p.reply.text)
	}
	w.send("POST", w.logins("readonly", "rotate"), cutOff).refused(fault.ManagedRoleConflict, "")
	found()
	told := w.sendAs(w.key, "o", "POST", w.logins("owner", "rotate"), cutOff).is(200, append(rotated, "password")...)
	if !w.server.LogInDirectly("shop-1", "shop-1", told.text("password")) {
		t.Error("the owner's new password does not work")
	}
	w.sendAs(w.key, "o", "POST", w.logins("owner", "rotate"), cutOff).is(200, rotated...)
}
