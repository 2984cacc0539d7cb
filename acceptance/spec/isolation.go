package spec

import (
	"bytes"
	"maps"
	"strings"
)

// goodBodies are bodies that each route with a body takes. A route that is missing here fails its scenarios.
var goodBodies = map[string]string{
	"POST /api/v1/databases":                        `{"name":"a-good-name","displayName":"D"}`,
	"PATCH /api/v1/databases/{id}/environment":      `{"environment":"staging"}`,
	"POST /api/v1/databases/{id}/lifecycle":         `{"action":"start"}`,
	"POST /api/v1/databases/{id}/network/allowlist": `{"cidr":"192.0.2.0/24"}`,
	"POST /api/v1/webhooks":                         `{"url":"` + quietURL + `"}`,

	"POST /api/v1/databases/{id}/custom-roles": `{"displayName":"R","accessProfile":"read_only","connectionLimit":1}`,

	"PATCH /api/v1/databases/{id}/custom-roles/{roleId}":                      `{"displayName":"R"}`,
	"POST /api/v1/databases/{id}/custom-roles/{roleId}/changes":               `{"kind":"rotate","confirmDisconnect":true}`,
	"POST /api/v1/databases/{id}/custom-roles/{roleId}/changes/{operationId}": `{"confirmDisconnect":true}`,
	"POST /api/v1/databases/{id}/custom-roles/{roleId}/delete":                `{"confirm":true}`,
	"POST /api/v1/databases/{id}/managed-roles/{login}/rotate":                `{"confirmDisconnect":true}`,
}

var isolating = []Scenario{
	{Name: "no route answers without a key, or with one that is wrong in any way; all such answers are the same",
		Needs: []Ability{SpeaksHTTP}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			revoked := s.WithKey(ada.Account)
			s.OK(s.Operator.RevokeKey(revoked.Key))
			for _, route := range s.Wire.Routes() {
				var first Answer
				for i, key := range []string{"", ada.Key.Text[:len(ada.Key.Text)-1] + "!", "pgh_AAAAAAAA_x", revoked.Key.Text} {
					answer := s.sends(s.request(route, made.ID, nobodysID, key))
					s.Refused(answer.refusal(), "UNAUTHORIZED")
					if i == 0 {
						first = answer
					}
					s.sameAnswer(route, first, answer)
				}
			}
		}},
	{Name: "on every route a foreign ID and a missing ID get the same bytes", Needs: []Ability{SpeaksHTTP}, Play: func(s *Stage) {
		ada, mallory := s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		work := ada.Follows(ada.BacksUp(made.ID))
		ids := map[string]string{"database": made.ID, "operation": work.ID, "webhook": ada.Hooks(quietURL, made.ID).ID}
		for _, route := range s.targeted() {
			foreign := ids[route.Target]
			one := s.sends(s.request(route, foreign, nobodysID, mallory.Key.Text))
			other := s.sends(s.request(route, nobodysID, nobodysID, mallory.Key.Text))
			s.That(one.Status == 404, "%s with a foreign ID is %d: %s", route, one.Status, one.Body)
			s.sameAnswer(route, one, other)
		}
	}},
	{Name: "on every route a key for others gets what a missing ID gets", Needs: []Ability{SpeaksHTTP}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		inside, outside := ada.Creates("inside"), ada.Creates("outside")
		work := ada.Follows(ada.BacksUp(outside.ID))
		selected := s.WithKey(ada.Account, inside.ID)
		for _, route := range s.Wire.Routes() {
			id := outside.ID
			if route.Target == "operation" {
				id = work.ID
			}
			answer := s.sends(s.request(route, id, nobodysID, selected.Key.Text))
			if route.FullAccount {
				s.Refused(answer.refusal(), "KEY_SCOPE_DENIED")
				continue
			}
			if route.Target == "" {
				s.That(answer.Status == 200 && !bytes.Contains(answer.Body, []byte(outside.ID)), "%s shows %s", route, answer.Body)
				continue
			}
			s.sameAnswer(route, s.sends(s.request(route, nobodysID, nobodysID, selected.Key.Text)), answer)
		}
	}},
}

// targeted are the routes that name something.
func (s *Stage) targeted() (routes []Route) {
	s.Helper()
	for _, r := range s.Wire.Routes() {
		if r.Target != "" {
			routes = append(routes, r)
		}
	}
	s.That(len(routes) >= 10, "only %d routes name anything", len(routes))
	return routes
}

// request fills a route in: its first parameter is id, every further one is part, but for file names and logins. A request with a
// body has an Idempotency-Key, too, which routes that want none overlook.
func (s *Stage) request(r Route, id, part, key string) Request {
	s.Helper()
	path := strings.Replace(r.Path, "{id}", id, 1)
	path = strings.NewReplacer("{filename}", "20260101_000000.sql.gz", "{login}", "runtime", "{entryId}", part,
		"{deliveryId}", part, "{roleId}", part, "{operationId}", part).Replace(path)
	s.That(!strings.Contains(path, "{"), "%s has a parameter that this scenario does not know", r)
	request := Request{Method: r.Method, Path: path, Key: key, From: s.someAddress()}
	if r.JSON {
		body, known := goodBodies[r.String()]
		s.That(known, "%s takes a body that this scenario does not know", r)
		request.Header, request.Body = map[string]string{"Idempotency-Key": s.Name("key")}, []byte(body)
		maps.Copy(request.Header, jsonHeader)
	}
	return request
}

// sameAnswer compares what a client sees of two answers; dates, request IDs and rate-limit figures are never the same.
func (s *Stage) sameAnswer(r Route, one, other Answer) {
	s.Helper()
	same := one.Status == other.Status && bytes.Equal(one.Body, other.Body)
	for _, name := range []string{"Content-Type", "Content-Length", "Cache-Control", "Location", "Connection"} {
		same = same && one.Header.Get(name) == other.Header.Get(name)
	}
	s.That(same, "%s answers\n%d %s\nand\n%d %s", r, one.Status, one.Body, other.Status, other.Body)
}
