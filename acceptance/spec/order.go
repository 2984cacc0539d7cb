package spec

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var checking = []Scenario{
	{Name: "the checks of a request come in one order", Play: func(s *Stage) {
		ada, eve, bob := s.Customer("pro"), s.Customer("free"), s.Customer("pro")
		made := ada.Creates("orders")
		selected := s.WithKey(ada.Account, made.ID)
		ada.Admits(bob, made, "viewer")
		viewer := s.WithKey(bob.Account, made.ID)
		ada.Sets(made.ID, "stop", "stopped")

		lifecycle := made.path("/lifecycle")
		environment := func(of id.DatabaseID) string { return "/api/v1/databases/" + string(of) + "/environment" }
		for _, c := range []struct {
			what         string
			method, path string
			key, body    string
			code         fault.Code
		}{
			{"no key, and all else wrong", "PATCH", environment("X"), "", "{", "UNAUTHORIZED"},
			{"a plan without API access, a malformed ID", "PATCH", environment("X"), eve.Key.Text, "{", "PLAN_API_ACCESS_REQUIRED"},
			{"a key of the wrong class, a bad body", "POST", "/api/v1/databases", selected.Key.Text, "{", "KEY_SCOPE_DENIED"},
			{"a malformed ID, a bad body", "PATCH", environment("X"), ada.Key.Text, "{", "VALIDATION_ERROR"},
			{"nothing there, a bad body", "PATCH", environment(nobodysID), ada.Key.Text, "{", "DATABASE_NOT_FOUND"},
			{"no right, a bad body", "PATCH", environment(made.ID), viewer.Key.Text, "{", "FORBIDDEN"},
			{"a bad body, a state that forbids it", "POST", lifecycle, ada.Key.Text, "{", "INVALID_JSON"},
			{"a state that forbids it", "POST", lifecycle, ada.Key.Text, `{"action":"restart"}`, "DATABASE_STATE_CONFLICT"},
		} {
			s.Log(c.what)
			answer := s.sends(Request{
				Method: c.method, Path: c.path, Key: c.key, From: s.someAddress(), Header: jsonHeader, Body: []byte(c.body),
			})
			s.Refused(answer.refusal(), c.code)
		}
	}},
	{Name: "a preview CI key works on no route of accounts", Play: func(s *Stage) {
		ada, made := s.Owner()
		ci := must(s.Operator.NewCIKey(ada.Account))(s)
		for _, route := range s.keyed() {
			if route.Preview {
				continue
			}
			s.Refused(s.sends(s.request(route, string(made.ID), nobodysID, ci.Text)).refusal(), "KEY_SCOPE_DENIED")
		}
	}},
}
