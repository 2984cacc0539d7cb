package spec

import (
	"strings"

	"github.com/pgherd/pgherd/core/id"
)

var talkingLegacyRoles = overSingleLogins([]Scenario{
	{Name: "every answer has exactly its fields, is not stored, and has no password but the credentials'", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.CreatesSingle("orders")
		talk := s.talksOf(ada, made)
		var answers [][]byte
		sends := func(method, path, body string, status int) []byte {
			s.Helper()
			answer := talk.sends(method, path, body, status)
			answers = append(answers, answer)
			return answer
		}
		s.fields(sends("POST", "/legacy-roles/opt-in", "", 200), "overlayId", "generation", "status")
		role := sends("POST", "/legacy-roles", `{"displayName":"R","accessProfile":"custom","connectionLimit":1}`, 200)
		s.fields(role, roleFields...)
		one := "/legacy-roles/" + s.text(role, "roleId")
		setup := []string{"roleId", "profile", "username", "displayName", "accessProfile", "ordinal", "status"}
		told := sends("POST", one+"/prepare", "", 202)
		s.fields(told, with(setup, "databaseName", "grantSql")...)
		refused := talk.asks("POST", one+"/admit", "")
		s.That(refused.Status == 409 && strings.Contains(string(refused.Body), `"databaseName":"`+made.Name+`"`) &&
			strings.Contains(string(refused.Body), `"username":"`+s.text(role, "username")+`"`) &&
			strings.Contains(string(refused.Body), `"grantSql":"GRANT CONNECT`), "it is %d %s", refused.Status, refused.Body)
		s.OK(s.OnServer.Owner(made, s.text(told, "grantSql")))
		s.fields(sends("POST", one+"/admit", "", 200), setup...)
		s.fields(sends("POST", one+"/reconcile", "", 200), with(roleFields, "operationId")...)
		for _, list := range []string{"/legacy-roles", "/legacy-roles?includeRevoked=true"} {
			answer := sends("GET", list, "", 200)
			s.fields(answer, "roles")
			s.fields(s.first(answer), with(roleFields, "operationId")...)
		}
		shown := talk.sends("POST", one+"/credentials", "", 200)
		s.fields(shown, with(roleFields, "host", "port", "database", "tlsRequired", "password")...)
		passwords := []string{s.text(shown, "password")}

		change := sends("POST", one+"/changes", `{"kind":"rotate","confirmDisconnect":true}`, 200)
		path := one + "/changes/" + s.text(change, "operationId")
		for _, answer := range [][]byte{
			change, sends("GET", path, "", 200), sends("POST", path, `{"confirmDisconnect":true}`, 200),
		} {
			s.fields(answer, "operationId", "roleId", "profile", "kind", "status", "credentialGeneration")
		}
		passwords = append(passwords, s.text(talk.sends("POST", one+"/credentials", "", 200), "password"))
		s.fields(sends("DELETE", one, "", 200), "roleId", "status")
		s.fields(sends("DELETE", one, "", 200), "roleId", "status")
		answers = append(answers, talk.s.sends(Request{Method: "GET", Path: made.path("/activity"), Key: ada.Key.Text}).Body)
		for _, answer := range answers {
			for _, password := range append(passwords, made.Password) {
				s.That(!strings.Contains(string(answer), password), "an answer tells a password")
			}
		}
	}},
	{Name: "a key is needed where the document says so, is good for one request, and not every text will do", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRoleAs(made, asksRole("Reports", 3))
		for _, change := range []func(*NewRole){
			func(n *NewRole) { n.DisplayName = "reports" },
			func(n *NewRole) { n.AccessProfile = "read_write" },
			func(n *NewRole) { n.ConnectionLimit = 4 },
		} {
			other := asksRole("Reports", 3)
			change(&other)
			s.Refused(refusal(ada.CreateRole(made.ID, other)), "LEGACY_ROLE_CONFLICT")
		}
		ada.Rotates(made, role, "change-1")
		s.Refused(refusal(ada.ChangeRole(made.ID, role.RoleID, "revoke", "change-1")), "LEGACY_ROLE_CONFLICT")
		for _, key := range []string{"", "service-internal-1", strings.Repeat("k", 201)} {
			other := asksRole("Other", 1)
			other.IdempotencyKey = key
			s.Refused(refusal(ada.CreateRole(made.ID, other)), "VALIDATION_ERROR", "Idempotency-Key")
			s.Refused(refusal(ada.ChangeRole(made.ID, role.RoleID, "revoke", key)), "VALIDATION_ERROR", "Idempotency-Key")
		}
		s.That(len(ada.ListsRoles(made)) == 1 && ada.FindsRole(made, role).Status == "ready", "the list is %+v", ada.ListsRoles(made))
	}},
	{Name: "the checks of a request come in one order", Play: func(s *Stage) {
		ada, eve := s.Customer("pro"), s.Customer("pro")
		made, closed := ada.CreatesSingle("orders"), ada.CreatesAs(NewDatabase{
			Name: s.Name("closed"), DisplayName: "C", RoleModel: "single_login",
		})
		list := made.path("/legacy-roles")
		viewer := ada.member(made, "viewer").Key.Text
		const good = `{"displayName":"R","accessProfile":"custom","connectionLimit":1}`
		s.checksInOrder([]doubtful{
			{"nothing there, a bad body", "POST", list, eve.Key.Text, "{", "DATABASE_NOT_FOUND"},
			{"not activated, a bad body", "POST", closed.path("/legacy-roles"), ada.Key.Text, "{", "FEATURE_NOT_AVAILABLE"},
			{"no right, a bad body", "POST", list, viewer, "{", "FORBIDDEN"},
			{"a bad body, no key, no opt-in", "POST", list, ada.Key.Text, "{", "VALIDATION_ERROR"},
			{"no key, no opt-in", "POST", list, ada.Key.Text, good, "VALIDATION_ERROR"},
			{"no such role, no opt-in", "POST", list + "/" + nobodysID + "/prepare", ada.Key.Text, "", "ROLE_NOT_FOUND"},
			{"no right, no such role", "DELETE", list + "/" + nobodysID, viewer, "", "FORBIDDEN"},
		})
		s.Refused(s.talksOf(ada, made).asks("POST", "/legacy-roles", good).refusal(), "LEGACY_ROLE_CONFLICT")
	}},
	{Name: "IDs are lowercase UUIDs, a confirmation is true, and routes without a body take none", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		talk, own := s.talksOf(ada, made), string(role.RoleID)
		for _, id := range []string{strings.ToUpper(own), compact(role.RoleID), "1"} {
			for _, step := range []string{"credentials", "prepare", "admit", "reconcile"} {
				s.Refused(talk.asks("POST", "/legacy-roles/"+id+"/"+step, "").refusal(), "VALIDATION_ERROR", "roleId")
			}
		}
		one := "/" + own
		for _, path := range []string{"/opt-in", one + "/credentials", one + "/prepare", one + "/admit", one + "/reconcile"} {
			s.Refused(talk.asks("POST", "/legacy-roles"+path, `{}`).refusal(), "VALIDATION_ERROR")
		}
		s.Refused(talk.asks("DELETE", "/legacy-roles/"+own, `{}`).refusal(), "VALIDATION_ERROR")
		for _, body := range []string{`{"kind":"rotate","confirmDisconnect":false}`, `{"kind":"rotate"}`} {
			s.Refused(talk.asks("POST", "/legacy-roles/"+own+"/changes", body).refusal(), "VALIDATION_ERROR", "confirmDisconnect")
		}
		for _, query := range []string{"false", "", "TRUE"} {
			s.Refused(talk.asks("GET", "/legacy-roles?includeRevoked="+query, "").refusal(), "VALIDATION_ERROR", "includeRevoked")
		}
		upper := made
		upper.ID = id.DatabaseID(strings.ToUpper(string(made.ID)))
		s.Refused(s.talksOf(ada, upper).asks("GET", "/legacy-roles", "").refusal(), "VALIDATION_ERROR", "id")
		s.bothIn(ada.Reveals(made, role).Login())
	}},
})
