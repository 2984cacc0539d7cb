package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
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
		mallory := s.Customer("free")
		s.OK(s.Operator.Suspend(mallory.Account, "abuse"))

		lifecycle := made.path("/lifecycle")
		environment := func(of id.DatabaseID) string { return "/api/v1/databases/" + string(of) + "/environment" }
		s.checksInOrder([]doubtful{
			{"no key, and all else wrong", "PATCH", environment("X"), "", "{", "UNAUTHORIZED"},
			{"a suspended account, a plan without API access", "PATCH", environment("X"), mallory.Key.Text, "{", "ACCOUNT_SUSPENDED"},
			{"a plan without API access, a malformed ID", "PATCH", environment("X"), eve.Key.Text, "{", "PLAN_API_ACCESS_REQUIRED"},
			{"a key of the wrong class, a bad body", "POST", "/api/v1/databases", selected.Key.Text, "{", "KEY_SCOPE_DENIED"},
			{"a malformed ID, a bad body", "PATCH", environment("X"), ada.Key.Text, "{", "VALIDATION_ERROR"},
			{"nothing there, a bad body", "PATCH", environment(nobodysID), ada.Key.Text, "{", "DATABASE_NOT_FOUND"},
			{"no right, a bad body", "PATCH", environment(made.ID), viewer.Key.Text, "{", "FORBIDDEN"},
			{"a bad body, a state that forbids it", "POST", lifecycle, ada.Key.Text, "{", "INVALID_JSON"},
			{"a state that forbids it", "POST", lifecycle, ada.Key.Text, `{"action":"restart"}`, "DATABASE_STATE_CONFLICT"},
		})
	}},
	{Name: "the checks of a request about a preview come in the same order", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ci, poor := s.Pipeline(ada), s.Pipeline(s.Customer("free"))
		opens := func(ref string) id.DatabaseID {
			return must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: ref}))(s).Data.DatabaseID
		}
		live, ended := opens("main"), opens("closed")
		must(ci.Previews.Delete(ctx, ended))(s)

		const all = "/api/v1/previews"
		extend := func(of id.DatabaseID) string { return all + "/" + string(of) + "/extend" }
		policy := all + "/" + string(ended) + "/backup-policy"
		s.checksInOrder([]doubtful{
			{"no key, and all else wrong", "POST", extend("X"), "", "{", "UNAUTHORIZED"},
			{"a plan without API access, a malformed ID", "POST", extend("X"), poor.Key.Text, "{", "PLAN_API_ACCESS_REQUIRED"},
			{"a plan without previews, a bad body", "POST", all, poor.Key.Text, "{", "PLAN_LIMIT"},
			{"a key of the wrong class, a bad body", "POST", all, s.WithKey(ada.Account, live).Key.Text, "{", "KEY_SCOPE_DENIED"},
			{"a key that makes copies alone", "POST", all, ada.Key.Text, `{"ref":"main","ttlHours":23}`, "KEY_SCOPE_DENIED"},
			{"a key of the wrong class, a malformed ID", "POST", extend("X"), ada.Key.Text, "{", "KEY_SCOPE_DENIED"},
			{"a plan without API access, no ref", "GET", all, poor.Key.Text, "", "PLAN_API_ACCESS_REQUIRED"},
			{"a key of the wrong class, no ref", "GET", all, ada.Key.Text, "", "KEY_SCOPE_DENIED"},
			{"no ref, a body", "GET", all, ci.Key.Text, "{}", "VALIDATION_ERROR"},
			{"a malformed ID, a bad body", "POST", extend("X"), ci.Key.Text, "{", "VALIDATION_ERROR"},
			{"nothing there, a bad body", "POST", extend(nobodysID), ci.Key.Text, "{", "PREVIEW_NOT_FOUND"},
			{"a bad body, a ref with other choices", "POST", all, ci.Key.Text, `{"ref":"main","ttlHours":23`, "INVALID_JSON"},
			{"a bad value, a ref with other choices", "POST", all, ci.Key.Text, `{"ref":"main","ttlHours":73}`, "VALIDATION_ERROR"},
			{"a ref with other choices", "POST", all, ci.Key.Text, `{"ref":"main","ttlHours":23}`, "PREVIEW_CONFLICT"},
			{"a bad body, a lease that has ended", "POST", extend(ended), ci.Key.Text, "{", "INVALID_JSON"},
			{"a bad value, a lease that has ended", "POST", extend(ended), ci.Key.Text, `{"ttlHours":73}`, "VALIDATION_ERROR"},
			{"a lease that has ended", "POST", extend(ended), ci.Key.Text, `{"ttlHours":1}`, "PREVIEW_LEASE_ENDED"},
			{"a bad value, a state that forbids it", "PATCH", policy, ci.Key.Text, `{"scheduledBackup":"hourly"}`, "VALIDATION_ERROR"},
			{"a state that forbids it", "PATCH", policy, ci.Key.Text, `{"scheduledBackup":"daily"}`, "PREVIEW_CONFLICT"},
			{"a gate that is closed, a route not for previews", "DELETE", "/api/v1/databases/" + string(live), ada.Key.Text, "",
				"FEATURE_NOT_AVAILABLE"},
		})
	}},
	{Name: "the checks of a request about a CI namespace come in the same order", Play: func(s *Stage) {
		ada, made := s.Owner()
		poor, selected := s.Customer("free"), s.WithKey(ada.Account, made.ID)
		namespace, revoked := must(s.Operator.NewNamespace(ada.Account))(s), must(s.Operator.NewNamespace(ada.Account))(s)
		s.OK(s.Operator.RevokeNamespace(revoked))
		trusts := func(of id.NamespaceID) string { return "/api/v1/ci-namespaces/" + string(of) + "/trusts" }
		const good = `{"issuer":"https://ci.example.org","audience":"a","subject":"repo:acme/shop:x"}`
		s.checksInOrder([]doubtful{
			{"no key, and all else wrong", "POST", trusts("X"), "", "{", "UNAUTHORIZED"},
			{"a plan without API access, a malformed ID", "POST", trusts("X"), poor.Key.Text, "{", "PLAN_API_ACCESS_REQUIRED"},
			{"a key for databases, a malformed ID", "POST", trusts("X"), selected.Key.Text, "{", "KEY_SCOPE_DENIED"},
			{"a preview CI key of the namespace", "POST", trusts(namespace), must(s.Operator.NewCIKeyOf(namespace))(s).Text, good,
				"KEY_SCOPE_DENIED"},
			{"a malformed ID, a bad body", "POST", trusts("X"), ada.Key.Text, "{", "VALIDATION_ERROR"},
			{"nothing there, a bad body", "POST", trusts(nobodysID), ada.Key.Text, "{", "NAMESPACE_NOT_FOUND"},
			{"a bad body, a namespace that is revoked", "POST", trusts(revoked), ada.Key.Text, "{", "INVALID_JSON"},
			{"a namespace that is revoked", "POST", trusts(revoked), ada.Key.Text, good, "VALIDATION_ERROR"},
			{"no such trust", "DELETE", trusts(namespace) + "/" + nobodysID, ada.Key.Text, "", "TRUST_NOT_FOUND"},
		})
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

// doubtful is a request with more than one thing wrong, and the code of the check that comes first.
type doubtful struct {
	what         string
	method, path string
	key, body    string
	code         fault.Code
}

// checksInOrder expects that each request is refused by the check that comes first.
func (s *Stage) checksInOrder(all []doubtful) {
	s.Helper()
	for _, d := range all {
		s.Log(d.what)
		r := Request{Method: d.method, Path: d.path, Key: d.key, From: s.someAddress()}
		if d.body != "" {
			r.Header, r.Body = jsonHeader, []byte(d.body)
		}
		s.Refused(s.sends(r).refusal(), d.code)
	}
}
