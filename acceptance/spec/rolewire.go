package spec

import (
	"encoding/json"
	"strings"

	"github.com/pgherd/pgherd/core/id"
)

// roleFields are those of a role in every answer that has one.
var roleFields = []string{
	"roleId", "profile", "displayName", "accessProfile", "username", "ordinal", "connectionLimit", "generation",
	"credentialGeneration", "status",
}

var talkingRoles = []Scenario{
	{Name: "every answer about roles has exactly its fields, and is not stored",
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			talk := s.talksOf(ada, ada.Creates("orders"))
			role := talk.sends("POST", "/custom-roles", `{"displayName":"R","accessProfile":"custom","connectionLimit":1}`, 200)
			s.fields(role, roleFields...)
			one := "/custom-roles/" + s.text(role, "roleId")
			for _, list := range []string{"/custom-roles", "/custom-roles?includeRevoked=true"} {
				answer := talk.sends("GET", list, "", 200)
				s.fields(answer, "roles")
				s.fields(s.first(answer), with(roleFields, "operationId")...)
			}
			s.fields(talk.sends("PATCH", one, `{"displayName":"S"}`, 200), "roleId", "displayName")
			shown := talk.sends("POST", one+"/credentials", "", 200)
			s.fields(shown, with(roleFields, "host", "port", "database", "tlsRequired", "password")...)
			setup := []string{"roleId", "profile", "username", "displayName", "accessProfile", "ordinal", "status"}
			s.fields(talk.sends("POST", one+"/admit", "", 200), setup...)

			change := talk.sends("POST", one+"/changes", `{"kind":"rotate","confirmDisconnect":true}`, 200)
			path := one + "/changes/" + s.text(change, "operationId")
			for _, answer := range [][]byte{
				change, talk.sends("GET", path, "", 200), talk.sends("POST", path, `{"confirmDisconnect":true}`, 200),
			} {
				s.fields(answer, "operationId", "roleId", "profile", "kind", "status", "credentialGeneration")
			}
			s.fields(talk.sends("POST", one+"/delete", `{"confirm":true}`, 200), "roleId", "status")
			s.fields(talk.sends("DELETE", one, "", 200), "roleId", "status")
		}},
	{Name: "every answer about managed logins has exactly its fields, and is not stored",
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			talk := s.talksOf(ada, ada.Creates("orders"))
			login := []string{"login", "username", "connectionLimit", "credentialGeneration"}
			list := talk.sends("GET", "/managed-roles", "", 200)
			s.fields(list, "roles")
			s.fields(s.first(list), login...)
			s.fields(talk.sends("POST", "/managed-roles/runtime/credentials", "", 200),
				with(login, "host", "port", "database", "tlsRequired", "password")...)
			change := []string{"operationId", "login", "kind", "status", "credentialGeneration"}
			s.fields(talk.sends("POST", "/managed-roles/readonly/rotate", `{"confirmDisconnect":true}`, 200), change...)
			talk.key = "owner"
			s.fields(talk.sends("POST", "/managed-roles/owner/rotate", `{"confirmDisconnect":true}`, 200), with(change, "password")...)
			s.fields(talk.sends("POST", "/managed-roles/owner/rotate", `{"confirmDisconnect":true}`, 200), change...)
		}},
	{Name: "what must be confirmed is confirmed with true, and the list is asked with true or nothing",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role, login := ada.AddsLogin(made, "Reports", "custom")
			open := s.bothIn(login)
			talk, one := s.talksOf(ada, made), "/custom-roles/"+string(role.RoleID)
			for _, c := range []struct{ path, body, field string }{
				{one + "/changes", `{"kind":"rotate","confirmDisconnect":false}`, "confirmDisconnect"},
				{one + "/changes", `{"kind":"rotate"}`, "confirmDisconnect"},
				{one + "/delete", `{"confirm":false}`, "confirm"},
				{one + "/delete", `{}`, "confirm"},
				{one + "/changes/" + nobodysID, `{"confirmDisconnect":false}`, "confirmDisconnect"},
				{"/managed-roles/owner/rotate", `{"confirmDisconnect":false}`, "confirmDisconnect"},
			} {
				s.Refused(talk.asks("POST", c.path, c.body).refusal(), "VALIDATION_ERROR", c.field)
			}
			for _, query := range []string{"false", "1", "", "TRUE"} {
				answer := talk.asks("GET", "/custom-roles?includeRevoked="+query, "")
				s.Refused(answer.refusal(), "VALIDATION_ERROR", "includeRevoked")
			}
			s.open(open...)
			s.bothIn(login)
		}},
	{Name: "IDs are lowercase UUIDs, and routes without a body take none", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		talk := s.talksOf(ada, made)
		own := string(role.RoleID)
		for _, id := range []string{strings.ToUpper(own), compact(own), "1", "{" + own + "}"} {
			for _, step := range []string{"credentials", "prepare", "admit"} {
				s.Refused(talk.asks("POST", "/custom-roles/"+id+"/"+step, "").refusal(), "VALIDATION_ERROR", "roleId")
			}
		}
		for _, path := range []string{"/credentials", "/prepare", "/admit"} {
			s.Refused(talk.asks("POST", "/custom-roles/"+own+path, `{}`).refusal(), "VALIDATION_ERROR")
		}
		s.Refused(talk.asks("DELETE", "/custom-roles/"+own, `{}`).refusal(), "VALIDATION_ERROR")
		upper := made
		upper.ID = id.DatabaseID(strings.ToUpper(string(made.ID)))
		s.Refused(s.talksOf(ada, upper).asks("GET", "/custom-roles", "").refusal(), "VALIDATION_ERROR", "id")
	}},
}

func with(fields []string, more ...string) []string {
	return append(append([]string(nil), fields...), more...)
}

// talks are requests about the roles of one database, as they go over the wire.
type talks struct {
	s    *Stage
	c    *Customer
	path string
	key  string
}

func (s *Stage) talksOf(c *Customer, db Created) *talks {
	return &talks{s: s, c: c, path: db.path(""), key: "talk"}
}

// asks sends a request with an idempotency key, and fails the story where the answer may be stored.
func (t *talks) asks(method, path, body string) Answer {
	t.s.Helper()
	r := Request{Method: method, Path: t.path + path, Key: t.c.Key.Text, Header: map[string]string{}}
	if body != "" {
		r.Header["Content-Type"], r.Body = "application/json", []byte(body)
	}
	if method == "POST" {
		r.Header["Idempotency-Key"] = t.key
	}
	answer := t.s.sends(r)
	t.s.That(answer.Header.Get("Cache-Control") == "no-store", "%s %s: the headers are %v", method, path, answer.Header)
	return answer
}

// sends is asks for what goes through.
func (t *talks) sends(method, path, body string, status int) []byte {
	t.s.Helper()
	answer := t.asks(method, path, body)
	t.s.That(answer.Status == status, "%s %s: %d %s; want %d", method, path, answer.Status, answer.Body, status)
	return answer.Body
}

// first is the first role of a list.
func (s *Stage) first(list []byte) []byte {
	s.Helper()
	var answer struct{ Roles []json.RawMessage }
	s.OK(json.Unmarshal(list, &answer))
	s.That(len(answer.Roles) > 0, "the list is %s", list)
	return answer.Roles[0]
}

// text is a field of an object.
func (s *Stage) text(object []byte, field string) string {
	s.Helper()
	fields := map[string]any{}
	s.OK(json.Unmarshal(object, &fields))
	value, ok := fields[field].(string)
	s.That(ok, "%s is %v", field, fields[field])
	return value
}
