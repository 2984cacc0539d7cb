package role

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

var models = []Model{ManagedRoles, LegacyRoles}

// sceneOf is a calm scene of a database of the model, which has opted in where it has to.
func sceneOf(m Model, roles ...Role) Scene {
	s := calmScene(roles...)
	if s.Database.RoleModel = m.Of; m.Of == database.SingleLogin {
		s.Database.ConnectionCap, s.Database.OverlayStatus = 0, database.OverlayActive
	}
	return s
}

var usernames = regexp.MustCompile(`^pgh_[0-9a-f]{32}_[cl][1-9][0-9]*$`)

func TestUsernames(t *testing.T) {
	for want, m := range map[string]Model{"_c7": ManagedRoles, "_l7": LegacyRoles} {
		if got := m.Username(someDatabase, 7); got != "pgh_0189abcdef01423485"+"6789abcdef0123"+want {
			t.Error(got)
		}
	}
	taken := database.RoleNames(someDatabase, "shop")
	platforms := []string{taken.Owner, taken.Runtime, taken.Readonly, taken.Holder, taken.ReadGroup, taken.WriteGroup}
	rapid.Check(t, func(t *rapid.T) {
		m, ordinal := rapid.SampledFrom(models).Draw(t, "model"), rapid.IntRange(1, 999_999_999).Draw(t, "ordinal")
		name := m.Username(someDatabase, ordinal)
		if !usernames.MatchString(name) || len(name) > 63 || !strings.HasSuffix(name, m.infix+strconv.Itoa(ordinal)) {
			t.Fatalf("%s has %d bytes", name, len(name))
		}
		if slices.Contains(platforms, name) || database.ValidateName(name) == nil {
			t.Fatalf("something else can be called %s", name)
		}
		for _, other := range models {
			if other.Names(someDatabase, name) != (other.Of == m.Of) {
				t.Fatalf("a role of %s is called %s, as seen by %s", m.Of, name, other.Of)
			}
		}
		if m.Names("0189abcd-ef01-4234-8567-89abcdef0124", name) {
			t.Fatalf("%s is of another database", name)
		}
		if next := rapid.IntRange(1, 999_999_999).Draw(t, "other"); next != ordinal && m.Username(someDatabase, next) == name {
			t.Fatalf("two ordinals have the name %s", name)
		}
	})
}

// What only looks like a username is none.
func FuzzNames(f *testing.F) {
	for _, m := range models {
		name := m.Username(someDatabase, 10)
		bare := strings.TrimSuffix(name, "10")
		for _, seed := range []string{
			name, strings.ToUpper(name), name + "\n", " " + name, bare, name + "_gro", bare + "01", bare + "-1", name + "00000000",
		} {
			f.Add(seed)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, m := range models {
			ordinal, err := strconv.Atoi(name[strings.LastIndexAny(name, "cl")+1:])
			want := err == nil && ordinal > 0 && ordinal < 1_000_000_000 && m.Username(someDatabase, ordinal) == name
			if m.Names(someDatabase, name) != want {
				t.Errorf("%q is of %s: %v", name, m.Of, !want)
			}
		}
	})
}

func TestModelsOfDatabases(t *testing.T) {
	for _, m := range models {
		if got := ModelOf(m.Of); got != m {
			t.Errorf("%s has the roles of %s", m.Of, got.Of)
		}
		for _, other := range models {
			err := sceneOf(m).Serves(other)
			if (err == nil) != (m.Of == other.Of) || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
				t.Errorf("%s on a database of %s: %v", other.Of, m.Of, err)
			}
		}
		s := sceneOf(m)
		s.Database.OverlayStatus = database.NoOverlay // nobody need opt in for it
		if err := s.AdmitsLoginChange(); err != nil {
			t.Errorf("rotating a login of %s: %v", m.Of, err)
		}
	}
}

// A refusal gets the model's code, and keeps what it says and what it was caused by.
func TestRefusalsOfAModel(t *testing.T) {
	cause := errors.New("the cause")
	for _, m := range models {
		if got := m.Refusal(nil); got != nil {
			t.Errorf("nothing is refused with %v", got)
		}
		plain, wrapped := conflictf("it is %d", 7), fault.Wrap(cause, fault.ManagedRoleConflict, "no")
		if got := m.Refusal(plain); fault.CodeOf(got) != m.Conflict || !strings.Contains(got.Error(), "it is 7") {
			t.Errorf("%s: %v", m.Of, got)
		}
		if got := m.Refusal(wrapped); fault.CodeOf(got) != m.Conflict || !errors.Is(got, cause) {
			t.Errorf("%s: %v", m.Of, got)
		}
		for _, other := range []error{cause, ErrNotFound(), fault.Invalid("kind", "is wrong"), fault.New(fault.AgentError, "no")} {
			if got := m.Refusal(other); got != other {
				t.Errorf("%v became %v", other, got)
			}
		}
	}
	if code := fault.CodeOf(conflictf("no")); code != fault.ManagedRoleConflict {
		t.Errorf("a refusal has become one of %s for everybody", code)
	}
}

// Legacy roles have limits of their own, each for itself, and no budget.
func TestLegacyLimits(t *testing.T) {
	for limit, good := range map[int]bool{-1: false, 0: false, 1: true, 20: true, 21: false, 1 << 40: false} {
		r := someRequest
		r.ConnectionLimit = limit
		if _, err := r.Check(LegacyRoles); (err == nil) != good || err != nil && !invalidField(err, "connectionLimit") {
			t.Errorf("%d connections: %v", limit, err)
		}
	}
	if MaxLegacyRoles*MaxLegacyLimit != database.OverlayConnections {
		t.Errorf("a server counts %d connections for the roles", database.OverlayConnections)
	}
	r := someRequest
	r.ConnectionLimit = MaxLegacyLimit
	for n := range MaxLegacyRoles + 2 {
		s := sceneOf(LegacyRoles, numbered(slices.Repeat([]int{MaxLegacyLimit}, n)...)...)
		for _, connectionCap := range []int{0, 2, 60} { // that of the database bounds nothing here
			s.Database.ConnectionCap = connectionCap
			if err := s.Admits(r); (err == nil) != (n < MaxLegacyRoles) || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
				t.Errorf("after %d roles, revoked ones counted: %v", n, err)
			}
		}
	}
}

// While its overlay does not stand, a database with a single login makes, opens and rotates no role. What there is can be shut
// out.
func TestRolesWaitForTheOverlay(t *testing.T) {
	for rule, decide := range rules {
		for _, status := range database.OverlayStatuses {
			s := sceneOf(LegacyRoles)
			s.Database.OverlayStatus = status
			good := status == database.OverlayActive || rule == "login" || closing[rule]
			if err := decide(s); (err == nil) != good || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
				t.Errorf("%s, overlay %s: %v", rule, status, err)
			}
		}
	}
}

// An opt-in that has something to make needs a calm database; one that finds its overlay only a database in service.
func TestOptIns(t *testing.T) {
	for _, c := range []struct {
		status database.OverlayStatus
		event  database.OverlayEvent
		acts   bool
	}{
		{database.NoOverlay, database.OptIn, true}, {database.OverlayReserved, database.OptIn, true},
		{database.OverlayActive, database.OptIn, false}, {database.OverlayActive, database.Lost, true},
	} {
		calm := sceneOf(LegacyRoles)
		calm.Database.OverlayStatus = c.status
		cell, err := calm.AdmitsOptIn(c.event)
		if err != nil || len(cell.Effects) > 0 != c.acts || c.acts && cell.Next != database.OverlayReserved {
			t.Errorf("%+v: %+v, %v", c, cell, err)
		}
		for name, change := range unrest(LegacyRoles) {
			s := calm
			change(&s)
			serves := s.Database.Status == database.Active || s.Database.Status == database.Stopped
			_, err := s.AdmitsOptIn(c.event)
			if (err == nil) != (!c.acts && serves) || err != nil && !fault.Has(err, fault.LegacyRoleConflict) {
				t.Errorf("%+v, %s: %v", c, name, err)
			}
		}
	}
	if _, err := sceneOf(ManagedRoles).AdmitsOptIn(database.OptIn); !fault.Has(err, fault.LegacyRoleConflict) {
		t.Errorf("of a managed database: %v", err)
	}
}

// Where the owner grants CONNECT, a repeated request finds its role, and takes it nowhere: it may be asked for at any time.
func TestReplayWhereTheOwnerConnects(t *testing.T) {
	for _, status := range Statuses {
		known := Role{Status: status, Fingerprint: someRequest.Fingerprint(), CredentialExpiresAt: &noon}
		for name, change := range unrest(LegacyRoles) {
			s := sceneOf(LegacyRoles)
			change(&s)
			if err := s.AdmitsReplay(known, someRequest, noon); (err == nil) == (status == Removed) {
				t.Errorf("%s, %s: %v", status, name, err)
			}
		}
		other := someRequest
		other.AccessProfile = Custom
		if err := sceneOf(LegacyRoles).AdmitsReplay(known, other, noon); !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s, another request: %v", status, err)
		}
	}
}

func TestGrantConnect(t *testing.T) {
	r := Role{Username: LegacyRoles.Username(someDatabase, 1)}
	for name, quoted := range map[string]string{"my-shop": `"my-shop"`, `a"; DROP ROLE x; --`: `"a""; DROP ROLE x; --"`} {
		if got := r.GrantConnect(name); got != "GRANT CONNECT ON DATABASE "+quoted+` TO "`+r.Username+`";` {
			t.Error(got)
		}
	}
}
