package role

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var someRequest = Request{DisplayName: "Reports", AccessProfile: ReadOnly, ConnectionLimit: 2, Key: "k"}

func TestRequests(t *testing.T) {
	wide := someRequest
	wide.DisplayName = "\u3000Reports\n"
	if got, err := wide.Check(ManagedRoles); err != nil || got != someRequest {
		t.Errorf("%+v, %v", got, err)
	}
	bad := map[string]func(*Request){
		"displayName":     func(r *Request) { r.DisplayName = "a\x00" },
		"accessProfile":   func(r *Request) { r.AccessProfile = "admin" },
		"connectionLimit": func(r *Request) { r.ConnectionLimit = 0 },
	}
	for field, change := range bad {
		r := someRequest
		change(&r)
		if _, err := r.Check(ManagedRoles); !invalidField(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	negative := someRequest
	negative.ConnectionLimit = -1
	if _, err := negative.Check(ManagedRoles); !invalidField(err, "connectionLimit") {
		t.Error(err)
	}
}

func TestFingerprints(t *testing.T) {
	seen := map[string]Request{}
	for _, name := range []string{"Reports", "Report", "Reports1", "Reportsread_only"} {
		for _, profile := range []AccessProfile{ReadOnly, ReadWrite, Custom} {
			for _, limit := range []int{1, 2, 11, 12} {
				r := Request{DisplayName: name, AccessProfile: profile, ConnectionLimit: limit, Key: "k"}
				f := string(r.Fingerprint())
				if other, ok := seen[f]; ok {
					t.Errorf("%+v and %+v are the same request", r, other)
				}
				seen[f] = r
			}
		}
	}
	trimmed, err := Request{DisplayName: " Reports ", AccessProfile: ReadOnly, ConnectionLimit: 2, Key: "other"}.Check(ManagedRoles)
	if err != nil || trimmed.Fingerprint() != someRequest.Fingerprint() {
		t.Error("white space around the label, or the key, makes another request")
	}
}

func TestBudgets(t *testing.T) {
	for limit, want := range map[int]int{0: 20, 1: 0, 2: 1, 3: 1, 20: 10, 60: 30, 200: 100} {
		if got := Budget(limit); got != want {
			t.Errorf("a cap of %d leaves %d, want %d", limit, got, want)
		}
	}
}

// numbered are roles with these connection limits, ready ones and revoked ones in turn.
func numbered(limits ...int) []Role {
	list := make([]Role, len(limits))
	for i, limit := range limits {
		list[i] = Role{
			ID: id.RoleID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), DisplayName: fmt.Sprint("role ", i),
			ConnectionLimit: limit, Status: []Status{Ready, Revoked}[i%2],
		}
	}
	return list
}

// At its edge the budget is spent to the last connection, and not one further.
func TestBudgetIsSpentExactly(t *testing.T) {
	cases := []struct {
		limit int   // of the database
		spent []int // by other roles; every second one is revoked
		left  int
	}{
		{0, nil, 20}, {0, []int{5, 5}, 10}, {0, []int{19}, 1}, {0, []int{20}, 0}, {0, []int{10, 10}, 0},
		{1, nil, 0}, {2, nil, 1}, {2, []int{1}, 0}, {3, nil, 1}, {20, nil, 10}, {20, []int{3, 4}, 3}, {20, []int{5, 5}, 0},
		{60, []int{29}, 1}, {60, []int{1, 29}, 0}, {200, []int{10, 10, 10, 10, 10, 10, 10, 10, 10}, 10},
		{20, []int{30, 30}, 0}, // the cap was higher once
	}
	for _, c := range cases {
		s := calmScene(numbered(c.spent...)...)
		s.Database.ConnectionCap = c.limit
		r := someRequest
		for r.ConnectionLimit = 1; r.ConnectionLimit <= c.left; r.ConnectionLimit++ {
			if err := s.Admits(r); err != nil {
				t.Fatalf("%+v: %d of %d left: %v", c, r.ConnectionLimit, c.left, err)
			}
		}
		err, told := s.Admits(r), fmt.Sprintf("at most %d:", c.left) // one more than is left
		switch {
		case c.limit == 0 && !fault.Has(err, fault.ManagedRoleConflict):
			t.Errorf("%+v: %v", c, err)
		case c.limit > 0 && (!invalidField(err, "connectionLimit") || !strings.Contains(err.Error(), told)):
			t.Errorf("%+v: %v", c, err)
		}
		r.ConnectionLimit = 1<<63 - 1
		if s.Admits(r) == nil {
			t.Errorf("%+v: every connection there is", c)
		}
	}
}

func TestCountOfRoles(t *testing.T) {
	ones := func(n int) []Role { return numbered(make([]int, n)...) } // a limit of 0 leaves the budget alone
	cases := map[string]struct {
		limit, others int
		ok            bool
	}{
		"tenth": {200, 9, true}, "eleventh": {200, 10, false}, "twelfth": {200, 11, false},
		"third without a cap": {0, 2, true}, "fourth without a cap": {0, 3, false}, "tenth without a cap": {0, 9, false},
		"fourth with a cap": {2, 3, true},
	}
	for name, c := range cases {
		s, r := calmScene(ones(c.others)...), someRequest
		s.Database.ConnectionCap, r.ConnectionLimit = c.limit, 1
		if err := s.Admits(r); (err == nil) != c.ok || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatBlocksACreate(t *testing.T) {
	with := func(name string, status Status) func(*Scene) {
		return func(s *Scene) {
			s.Roles = []Role{{ID: otherRole, DisplayName: name, Status: status, ConnectionLimit: 1}}
		}
	}
	barred := func(s *Scene) { s.Database.RolesBarred = true }
	overlaid := func(s *Scene) { // the opt-in grants on what there is
		s.Database.RolesBarred, s.Database.RoleModel = true, database.SingleLogin
		s.Database.OverlayStatus = database.OverlayActive
	}
	cases := map[string]struct {
		change func(*Scene)
		code   fault.Code
		says   string
	}{
		"barred clone":            {barred, fault.CustomRoleRequiresV3Clone, "backup"},
		"barred, with an overlay": {overlaid, "", ""},
		"reserved role":           {with("Exports", Reserved), fault.ManagedRoleConflict, string(otherRole)},
		"prepared role":           {with("Exports", SQLReady), fault.ManagedRoleConflict, string(otherRole)},
		"label of a ready role":   {with("Reports", Ready), fault.ManagedRoleConflict, "displayName"},
		"label of a revoked one":  {with("Reports", Revoked), fault.ManagedRoleConflict, "displayName"},
		"label that looks alike":  {with("Re\u200dports", Ready), fault.ManagedRoleConflict, "displayName"},
		"ready, another label":    {with("Exports", Ready), "", ""},
		"revoked, another label":  {with("Exports", Revoked), "", ""},
		"expired, another label":  {with("Exports", Expired), "", ""},
		"updating, another label": {with("Exports", Updating), "", ""},
	}
	for name, c := range cases {
		s := calmScene()
		c.change(&s)
		err := s.Admits(someRequest)
		if c.code == "" && err != nil || c.code != "" && (!fault.Has(err, c.code) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unrest is everything on a database of the model that roles wait for.
func unrest(m Model) map[string]func(*Scene) {
	list := map[string]func(*Scene){
		"pending change": func(s *Scene) { s.Change = &Change{ID: someChange, Login: database.OwnerLogin, Status: Pending} },
	}
	if m.Of == database.Managed {
		list["single_login"] = func(s *Scene) { s.Database.RoleModel = database.SingleLogin }
	}
	for _, status := range database.Statuses {
		if status != database.Active {
			list[string(status)] = func(s *Scene) { s.Database.Status = status }
		}
	}
	list["open operation"] = func(s *Scene) { s.Blocking = "restore" }
	return list
}

// rules are the decisions that need a calm database; each would be yes on a calm one.
var rules = map[string]func(s Scene) error{
	"create":  func(s Scene) error { return s.Admits(someRequest) },
	"prepare": func(s Scene) error { _, err := s.AdmitsSetup(Role{Status: Reserved}, Prepare, noon); return err },
	"admit":   func(s Scene) error { _, err := s.AdmitsSetup(Role{Status: SQLReady}, Admit, noon); return err },
	"rotate":  func(s Scene) error { _, err := s.AdmitsChange(Role{Status: Ready}, Rotation, noon); return err },
	"revoke":  func(s Scene) error { _, err := s.AdmitsChange(Role{Status: Ready}, Revocation, noon); return err },
	"login":   func(s Scene) error { return s.AdmitsLoginChange() },
	"delete":  func(s Scene) error { _, err := s.AdmitsRemoval(Role{Status: Ready}, Delete); return err },
	"remove":  func(s Scene) error { _, err := s.AdmitsRemoval(Role{Status: Revoked}, Remove); return err },
}

// closing are the rules about what only shuts roles out. It needs no groups, and may come while the database is stopped.
var closing = map[string]bool{"revoke": true, "delete": true, "remove": true}

func TestRolesWaitForTheDatabase(t *testing.T) {
	for _, m := range models {
		for rule, decide := range rules {
			if err := decide(sceneOf(m)); err != nil {
				t.Errorf("%s on a calm database of %s: %v", rule, m.Of, err)
			}
			for name, change := range unrest(m) {
				s := sceneOf(m)
				change(&s)
				may := closing[rule] && name == "stopped" || (closing[rule] || rule == "login") && name == "single_login"
				if err := decide(s); fault.Has(err, fault.ManagedRoleConflict) == may {
					t.Errorf("%s, %s, %s: %v", m.Of, rule, name, err)
				}
			}
		}
	}
	s := calmScene()
	s.Change = &Change{ID: someChange}
	if err := s.AdmitsLoginChange(); !strings.Contains(err.Error(), string(someChange)) {
		t.Errorf("which change is unfinished is not told: %v", err)
	}
}

// A new role is admitted exactly where the database is calm, the label is free, there is a place, no other role is half made,
// and the budget covers it.
func TestCreateRule(t *testing.T) {
	its := []Status{Ready, Revoked, Ready, Revoked, Expired, Updating, SQLReady}
	rapid.Check(t, func(t *rapid.T) {
		s, r := calmScene(), someRequest
		s.Database.ConnectionCap = rapid.SampledFrom([]int{0, 1, 2, 20, 60, 200}).Draw(t, "cap")
		s.Database.RolesBarred = rapid.IntRange(0, 9).Draw(t, "barred") == 0
		r.ConnectionLimit = rapid.IntRange(1, 25).Draw(t, "limit")
		sum, ok := r.ConnectionLimit, !s.Database.RolesBarred
		n := rapid.IntRange(0, 11).Draw(t, "roles")
		for i := range n {
			o := Role{
				ID: id.RoleID(fmt.Sprint(i)), DisplayName: fmt.Sprint("role ", i),
				ConnectionLimit: rapid.IntRange(1, 12).Draw(t, "its limit"),
				Status:          rapid.SampledFrom(its).Draw(t, "its status"),
			}
			if rapid.IntRange(0, 19).Draw(t, "alike") == 0 {
				o.DisplayName = "Reports\u200d"
			}
			sum += o.ConnectionLimit
			ok = ok && o.Status != SQLReady && o.DisplayName != "Reports\u200d"
			s.Roles = append(s.Roles, o)
		}
		if s.Database.ConnectionCap == 0 {
			ok = ok && n < 3 && sum <= 20
		} else {
			ok = ok && n < 10 && 2*sum <= s.Database.ConnectionCap
		}
		if err := s.Admits(r); (err == nil) != ok {
			t.Fatalf("want %v: %v", ok, err)
		}
	})
}
