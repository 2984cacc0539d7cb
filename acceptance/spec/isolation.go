package spec

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
)

var isolating = []Scenario{
	{Name: "no route answers without a key, or with one that is wrong in any way; all such answers are the same",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			revoked := s.WithKey(ada.Account)
			s.OK(s.Operator.RevokeKey(revoked.Key))
			for _, route := range s.keyed() {
				var first Answer
				for i, key := range []string{"", ada.Key.Text[:len(ada.Key.Text)-1] + "!", "pgh_AAAAAAAA_x", revoked.Key.Text} {
					answer := s.sends(s.request(route, string(made.ID), nobodysID, key))
					s.Refused(answer.refusal(), "UNAUTHORIZED")
					if i == 0 {
						first = answer
					}
					s.sameAnswer(route, first, answer)
				}
			}
		}},
	{Name: "on every route, in every place, a foreign ID and a missing ID get the same bytes",
		Play: func(s *Stage) {
			ada, mallory := s.Customer("pro"), s.Customer("pro")
			foreign, home := ada.makesOneOfEach(), mallory.Creates("orders")
			own := map[string]string{ // all that other things lie in
				"database": string(home.ID), "{roleId}": string(mallory.AddsRole(home, "Reports", "custom").RoleID),
				"webhook":   string(mallory.Hooks(quietURL, home.ID).ID),
				"namespace": string(must(s.Operator.NewNamespace(mallory.Account))(s)),
			}
			mallory.fillsSingle(mallory.OptsIn(mallory.CreatesSingle("single")), own)
			s.OK(s.Operator.Enroll(home.ID, "all"))
			for _, route := range s.targeted() {
				parameters, key := route.parameters(), s.WithKey(mallory.Account).Key.Text // one a route, for the limit of each
				for i := range parameters {
					mine := named(parameters[:i], own)
					one := s.sends(s.fill(route, key, slices.Concat(mine, named(parameters[i:], foreign))))
					other := s.sends(s.fill(route, key, slices.Concat(mine, named(parameters[i:], nobodys))))
					s.That(one.Status == 404, "%s with a foreign %s is %d: %s", route, parameters[i], one.Status, one.Body)
					s.sameAnswer(route, one, other)
				}
			}
		}},
	{Name: "on every route a key for others gets what a missing ID gets", Play: func(s *Stage) {
		ada := s.Customer("pro")
		inside, outside := ada.Creates("inside"), ada.Creates("outside")
		work := ada.Follows(ada.BacksUp(outside.ID))
		for _, route := range s.keyed() {
			selected := s.WithKey(ada.Account, inside.ID) // one a route, for the limit of each
			id := string(outside.ID)
			if route.Target == "operation" {
				id = string(work.ID)
			}
			answer := s.sends(s.request(route, id, nobodysID, selected.Key.Text))
			if route.FullAccount || route.Preview {
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

// keyed are the routes that need a key.
func (s *Stage) keyed() []Route {
	return slices.DeleteFunc(slices.Clone(s.Routes), func(r Route) bool { return r.Public })
}

// targeted are the routes that name something of an account's keys. Those of preview CI keys have scenarios of their own.
func (s *Stage) targeted() (routes []Route) {
	s.Helper()
	for _, r := range s.Routes {
		if r.Target != "" && !r.Preview {
			routes = append(routes, r)
		}
	}
	s.That(len(routes) >= 10, "only %d routes name anything", len(routes))
	return routes
}

// parameters are those of a route that name something of a customer's, in their order; the first is called after its kind.
func (r Route) parameters() (names []string) {
	for i, found := range parameter.FindAllString(r.Path, -1) {
		switch {
		case i == 0 && strings.Contains(r.Path, "/managed-restore/"):
			names = append(names, "restore operation")
		case i == 0:
			names = append(names, r.Target)
		case found == "{operationId}" && strings.Contains(r.Path, "/extensions/"):
			names = append(names, "extension operation")
		case found != "{login}": // every managed database has the same
			names = append(names, found)
		}
	}
	if r.legacy() {
		for i, name := range names {
			names[i] = legacyOf(name)
		}
	}
	return names
}

// legacy says that the route is about a database with a single login, and not about a managed one.
func (r Route) legacy() bool { return strings.Contains(r.Path, "/legacy-roles") }

// legacyOf names what is of a database with a single login.
func legacyOf(parameter string) string { return "legacy " + parameter }

var parameter = regexp.MustCompile(`\{\w+\}`)

// nobodys are IDs of things that are not there, by parameter.
var nobodys = map[string]string{
	"database": nobodysID, "operation": nobodysID, "webhook": nobodysID, "{entryId}": nobodysID, "{deliveryId}": nobodysID,
	"{roleId}": nobodysID, "{operationId}": nobodysID, "{membershipId}": nobodysID, "{invitationId}": nobodysID,
	"{uploadId}": nobodysID, "namespace": nobodysID, "{trustId}": nobodysID,
	legacyOf("database"): nobodysID, legacyOf("{roleId}"): nobodysID, legacyOf("{operationId}"): nobodysID,
	"extension operation": nobodysID, "restore operation": nobodysID, "{filename}": "20260101_000000.sql.gz",
}

// makesOneOfEach makes something of every kind, and returns the IDs by parameter. The endpoint has heard of nothing where there
// are no receivers: no scenario sends anything to a real address.
func (c *Customer) makesOneOfEach() map[string]string {
	c.stage.Helper()
	made, url := c.Creates("orders"), quietURL
	has := c.fills(made)
	has["{deliveryId}"], has["{uploadId}"] = nobodysID, string(c.Announces(c.uploadable().ID, []byte("a dump")).UploadID)
	if c.stage.Receivers != nil {
		url = c.stage.receiver()
	}
	c.fillsSingle(c.OptsIn(c.CreatesSingle("single")), has)
	hook := c.Hooks(url, made.ID).ID
	has["webhook"] = string(hook)
	namespace := must(c.stage.Operator.NewNamespace(c.Account))(c.stage)
	trust := must(c.stage.Operator.AddTrust(namespace, ciSystem, ciAudience, "repo:acme/shop:**"))(c.stage)
	has["namespace"], has["{trustId}"] = string(namespace), string(trust)
	if c.stage.Receivers != nil {
		has["{deliveryId}"] = string(must(c.Webhooks.Test(ctx, hook))(c.stage).DeliveryID)
	}
	return has
}

// fills makes something of every kind that belongs to a database, and returns the IDs by parameter.
func (c *Customer) fills(made Created) map[string]string {
	c.stage.Helper()
	c.stage.OK(c.stage.Operator.QualifyExtensions())
	installs, role := c.Installs(made, "citext"), c.AddsRole(made, "Reports", "custom")
	bob, invited := c.stage.Customer("pro"), wire.AddMember{Email: c.stage.address(), Role: "viewer"}
	has := map[string]string{
		"database": string(made.ID), "{entryId}": string(c.Allows(made.ID, "127.0.0.0/8").ID),
		"{filename}": string(c.FinishesBackup(made.ID)), "extension operation": string(installs.ID),
		"operation": string(c.ListsBackups(made.ID)[0].OperationID),
		"{roleId}":  string(role.RoleID), "{operationId}": string(c.Rotates(made, role, "rotate-1").OperationID),
		"{membershipId}": string(c.Admits(bob, made, "viewer")),
		"{invitationId}": must(c.Members.Add(ctx, made.ID, invited))(c.stage).ID,
		"{uploadId}":     nobodysID, // it has managed logins
	}
	c.stage.OK(c.stage.Operator.Enroll(made.ID, "all"))
	restores := c.Reserves(made, backup.Filename(has["{filename}"]), "restore-1")
	has["restore operation"] = string(must(c.Operations.Cancel(ctx, restores.ID))(c.stage).Operation.ID)
	return has
}

// fillsSingle makes a role of a database with a single login, and adds the IDs.
func (c *Customer) fillsSingle(made Created, has map[string]string) {
	c.stage.Helper()
	s := *c.stage
	s.legacy = true
	owner := *c
	owner.stage = &s
	owner.Client = owner.on(0)
	role := owner.AddsRole(made, "Reports", "custom")
	has[legacyOf("database")], has[legacyOf("{roleId}")] = string(made.ID), string(role.RoleID)
	has[legacyOf("{operationId}")] = string(owner.Rotates(made, role, "rotate-1").OperationID)
}

// named are the values of parameters.
func named(parameters []string, has map[string]string) (values []string) {
	for _, p := range parameters {
		values = append(values, has[p])
	}
	return values
}

// request fills a route in: its first parameter is id, every further one is part, but for file names.
func (s *Stage) request(r Route, id, part, key string) Request {
	s.Helper()
	var values []string
	for i, p := range r.parameters() {
		switch {
		case i == 0:
			values = append(values, id)
		case p == "{filename}":
			values = append(values, nobodys[p])
		default:
			values = append(values, part)
		}
	}
	return s.fill(r, key, values)
}

// fill is a request for a route whose parameters have the given values. One with a body has an Idempotency-Key, too, which routes
// that want none overlook.
func (s *Stage) fill(r Route, key string, values []string) Request {
	s.Helper()
	path := strings.Replace(r.Path, "{login}", "runtime", 1)
	for _, v := range values {
		path = strings.Replace(path, parameter.FindString(path), v, 1)
	}
	s.That(!strings.Contains(path, "{"), "%s has a parameter that this scenario does not know", r)
	request := Request{Method: r.Method, Path: path, Key: key, From: s.someAddress()}
	if r.Body != nil {
		request.Header, request.Body = map[string]string{"Idempotency-Key": s.Name("key")}, r.Body
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
