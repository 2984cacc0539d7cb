package spec

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// rights is who may do what with a database, as the decisions have it (section 2).
var rights = map[string][]account.Standing{
	"see":       {"owner", "admin", "developer", "viewer"},
	"back up":   {"owner", "admin", "developer"},
	"configure": {"owner", "admin"},
	"own":       {"owner"},
	"account":   {"owner"}, // with a full-account key only
}

// takes is the right that each route about a database takes. It is written after the decisions, and not made of the table of
// routes: a route that is new there needs a line here.
var takes = map[string]string{
	"GET /databases/{id}":                                              "see",
	"PATCH /databases/{id}/environment":                                "configure",
	"POST /databases/{id}/lifecycle":                                   "configure",
	"GET /databases/{id}/network/allowlist":                            "see",
	"POST /databases/{id}/network/allowlist":                           "configure",
	"DELETE /databases/{id}/network/allowlist/{entryId}":               "configure",
	"GET /databases/{id}/recovery-window":                              "see",
	"GET /databases/{id}/recovery-certificate":                         "see",
	"GET /databases/{id}/backups":                                      "see",
	"POST /databases/{id}/backups":                                     "back up",
	"PATCH /databases/{id}/backup-policy":                              "back up",
	"GET /databases/{id}/backups/{filename}":                           "see",
	"GET /databases/{id}/backups/{filename}/certificate":               "see",
	"DELETE /databases/{id}/backups/{filename}":                        "back up",
	"POST /databases/{id}/backups/{filename}":                          "own",
	"POST /databases/{id}/backups/restore-upload/init":                 "own",
	"PUT /databases/{id}/backups/restore-upload/{uploadId}":            "own",
	"POST /databases/{id}/backups/restore-upload/complete":             "own",
	"POST /databases/{id}/managed-restores":                            "account",
	"POST /databases/{id}/clone":                                       "account",
	"POST /databases/{id}/confirm-upgrade":                             "own",
	"POST /databases/{id}/rescue":                                      "account",
	"POST /databases/{id}/comparisons":                                 "account",
	"POST /databases/{id}/searches":                                    "account",
	"POST /operations/{operationId}/managed-restore/advance":           "account",
	"GET /databases/{id}/operations":                                   "see",
	"GET /operations/{id}":                                             "see",
	"POST /operations/{id}/cancel":                                     "back up", // of a backup
	"DELETE /databases/{id}":                                           "account",
	"POST /databases/{id}/recover":                                     "account",
	"GET /databases/{id}/deletion-backup":                              "account",
	"GET /databases/{id}/activity":                                     "see",
	"GET /databases/{id}/usage":                                        "see",
	"GET /databases/{id}/custom-roles":                                 "see",
	"POST /databases/{id}/custom-roles":                                "configure",
	"PATCH /databases/{id}/custom-roles/{roleId}":                      "configure",
	"DELETE /databases/{id}/custom-roles/{roleId}":                     "configure",
	"POST /databases/{id}/custom-roles/{roleId}/credentials":           "configure",
	"POST /databases/{id}/custom-roles/{roleId}/changes":               "configure",
	"GET /databases/{id}/custom-roles/{roleId}/changes/{operationId}":  "configure",
	"POST /databases/{id}/custom-roles/{roleId}/changes/{operationId}": "configure",
	"POST /databases/{id}/custom-roles/{roleId}/delete":                "configure",
	"POST /databases/{id}/custom-roles/{roleId}/prepare":               "configure",
	"POST /databases/{id}/custom-roles/{roleId}/admit":                 "configure",
	"POST /databases/{id}/legacy-roles/opt-in":                         "configure",
	"GET /databases/{id}/legacy-roles":                                 "see",
	"POST /databases/{id}/legacy-roles":                                "configure",
	"DELETE /databases/{id}/legacy-roles/{roleId}":                     "configure",
	"POST /databases/{id}/legacy-roles/{roleId}/prepare":               "configure",
	"POST /databases/{id}/legacy-roles/{roleId}/admit":                 "configure",
	"POST /databases/{id}/legacy-roles/{roleId}/reconcile":             "configure",
	"POST /databases/{id}/legacy-roles/{roleId}/credentials":           "configure",
	"POST /databases/{id}/legacy-roles/{roleId}/changes":               "configure",
	"GET /databases/{id}/legacy-roles/{roleId}/changes/{operationId}":  "configure",
	"POST /databases/{id}/legacy-roles/{roleId}/changes/{operationId}": "configure",
	"GET /databases/{id}/query-timeouts":                               "own",
	"POST /databases/{id}/query-timeouts":                              "own",
	"GET /databases/{id}/slow-queries":                                 "configure",
	"GET /databases/{id}/members":                                      "account",
	"POST /databases/{id}/members":                                     "account",
	"PATCH /databases/{id}/members/{membershipId}":                     "account",
	"DELETE /databases/{id}/members/{membershipId}":                    "account",
	"GET /databases/{id}/invitations":                                  "account",
	"POST /databases/{id}/invitations/{invitationId}/resend":           "account",
	"DELETE /databases/{id}/invitations/{invitationId}":                "account",
	"GET /databases/{id}/extensions":                                   "see",
	"POST /databases/{id}/extensions/operations":                       "configure",
	"GET /databases/{id}/extensions/operations/{operationId}":          "see",
	"GET /databases/{id}/managed-roles":                                "see",
	"POST /databases/{id}/managed-roles/{login}/credentials":           "configure",
	"POST /databases/{id}/managed-roles/{login}/rotate":                "configure",
}

var permitting = []Scenario{
	{Name: "on every route, everybody does with a database what their role allows, and nothing else", Play: func(s *Stage) {
		ada, made := s.Owner()
		single := ada.OptsIn(ada.CreatesSingle("single"))
		has, routes := ada.fills(made), s.ofDatabases()
		ada.fillsSingle(single, has)
		for _, who := range s.everybody(ada, []Created{made, single}, len(routes)) {
			for i, route := range routes {
				request := s.fill(route, who.keys[i/s.Writes], named(route.parameters(), has))
				s.answersBy(who, route, s.sends(request))
			}
		}
	}},
}

// caller is somebody who asks for something about one database.
type caller struct {
	name     string
	standing account.Standing // that the keys give on the database; empty where they give none
	selected bool             // the keys are for that database, not for the whole account
	keys     []string         // as many as the requests need
}

// everybody is who may ask for something about databases of one owner, with keys for so many requests. Those who may least come
// first: the owner, at the end, may do what leaves nothing for others.
func (s *Stage) everybody(ada *Customer, all []Created, requests int) (callers []caller) {
	s.Helper()
	var databases []id.DatabaseID
	for _, db := range all {
		databases = append(databases, db.ID)
	}
	add := func(name string, standing account.Standing, of Account, databases ...id.DatabaseID) {
		c := caller{name: name, standing: standing, selected: len(databases) > 0}
		for range (requests-1)/s.Writes + 1 {
			c.keys = append(c.keys, s.WithKey(of, databases...).Key.Text)
		}
		callers = append(callers, c)
	}
	add("a stranger", "", s.Customer("pro").Account)
	eve := s.Customer("pro")
	var memberships []id.MembershipID
	for _, db := range all {
		memberships = append(memberships, ada.Admits(eve, db, "admin"))
	}
	add("an admin until now", "", eve.Account, databases...)
	for i, db := range databases {
		s.OK(ada.Members.Remove(ctx, db, memberships[i]))
	}
	for _, role := range []account.Standing{"viewer", "developer", "admin"} {
		bob := s.Customer("pro")
		for _, db := range all {
			ada.Admits(bob, db, role)
		}
		add("the "+string(role)+" with a full-account key", "", bob.Account)
		add("the "+string(role), role, bob.Account, databases...)
	}
	add("the owner with a key for the databases", "owner", ada.Account, databases...)
	add("the owner", "owner", ada.Account)
	return callers
}

// ofDatabases are the routes about a database, or about something that belongs to one.
func (s *Stage) ofDatabases() (routes []Route) {
	s.Helper()
	left := maps.Clone(takes)
	for _, r := range s.targeted() {
		if r.Target == "webhook" || r.Target == "namespace" {
			continue // belongs to the account
		}
		right := takes[r.line()]
		s.That(right != "", "no line here tells the right that %s takes", r)
		s.That((right == "account") == r.FullAccount, "%s takes the right %q; full-account keys only: %t", r, right, r.FullAccount)
		routes = append(routes, r)
		delete(left, r.line())
	}
	slices.SortStableFunc(routes, func(a, b Route) int { return cmp.Compare(a.ends(), b.ends()) })
	s.That(len(left) == 0, "there are no routes %v", left)
	return routes
}

// ends is 1 for the route after which there is no database.
func (r Route) ends() int {
	if r.line() == "DELETE /databases/{id}" {
		return 1
	}
	return 0
}

// missing is what somebody is told for whom there is no such thing.
func (r Route) missing() fault.Code {
	if strings.HasSuffix(r.Path, "/deletion-backup") {
		return "DELETION_BACKUP_NOT_AVAILABLE"
	}
	return fault.Code(strings.ToUpper(r.Target) + "_NOT_FOUND")
}

// line is the route in takes.
func (r Route) line() string { return strings.Replace(r.String(), "/api/v1", "", 1) }

// answersBy fails the story where an answer is not what the caller's right makes of it. What gets past the right may still fail
// for the state that others before have left.
func (s *Stage) answersBy(who caller, r Route, a Answer) {
	s.Helper()
	right, missing := takes[r.line()], r.missing()
	var ok bool
	switch {
	case right == "account" && who.selected:
		ok = a.is("KEY_SCOPE_DENIED")
	case who.standing == "":
		ok = a.is(missing)
	case !slices.Contains(rights[right], who.standing):
		ok = a.is("FORBIDDEN")
	default:
		none := missing == "DELETION_BACKUP_NOT_AVAILABLE" // which there is of no live database
		ok = slices.Contains([]int{200, 201, 202, 204, 400, 404, 409}, a.Status) && (none || !a.is(missing))
	}
	s.That(ok, "%s: %s is %d: %s", who.name, r, a.Status, a.Body)
}

// is reports whether a request was refused with exactly that code and its status.
func (a Answer) is(code fault.Code) bool {
	var e *apiclient.Error
	return errors.As(a.refusal(), &e) && e.Code == code && e.Status == code.Status()
}
