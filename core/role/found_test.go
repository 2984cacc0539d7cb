package role_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
)

func TestTraitsOfALogin(t *testing.T) {
	good := role.Login{Present: true, Password: role.OurPassword, Limit: 8, InGroup: true}
	with := func(change func(*role.Login)) role.Login { l := good; change(&l); return l }
	for _, c := range []struct {
		of             role.Login
		letsIn         bool
		altered, lacks string
	}{
		{good, true, "", ""},
		{good, false, "", "log-in"},
		{with(func(l *role.Login) { l.Empowered = true }), true, "attributes", ""},
		{with(func(l *role.Login) { l.InOthers = true }), true, "memberships", ""},
		{with(func(l *role.Login) { l.Limit = -1 }), true, "connection limit", ""},
		{with(func(l *role.Login) { l.Limit, l.Empowered, l.InOthers = 9, true, true }), true,
			"attributes, connection limit, memberships", ""},
		{with(func(l *role.Login) { l.Password = role.OtherPassword }), true, "", "password"},
		{with(func(l *role.Login) { l.Password, l.InGroup = role.NoPassword, false }), false, "", "group, password, log-in"},
	} {
		altered, lacks := role.ListTraits(c.of.Altered(8)), role.ListTraits(c.of.Lacks(c.letsIn))
		if altered != c.altered || lacks != c.lacks {
			t.Errorf("%+v: altered %q, lacks %q", c, altered, lacks)
		}
	}
}

// looks are what may be seen of a role.
var looks = map[string]role.Found{
	"absent":  {},
	"shut":    {Present: true, Lacks: []role.Trait{role.Group, role.Password, role.LogIn}},
	"open":    {Present: true, Open: true},
	"half":    {Present: true, Open: true, Lacks: []role.Trait{role.Password}},
	"closed":  {Present: true, Lacks: []role.Trait{role.LogIn}},
	"grouped": {Present: true, Open: true, Lacks: []role.Trait{role.Group}},
	"altered": {Present: true, Altered: []role.Trait{role.Memberships}},
	"raised":  {Present: true, Open: true, Altered: []role.Trait{role.Attributes}},
}

// reconciliations are what becomes of a role for each look where its last step is done, and where it is not: a step that is taken
// over, "as it is", or what the refusal says.
var reconciliations = map[role.Status]map[string][2]string{
	role.Reserved: {
		"absent": {"no longer has", "as it is"}, "shut": {"prepare", "as it is"}, "open": {"not proven", "not proven"},
		"half": {"not proven", "not proven"}, "closed": {"prepare", "as it is"}, "grouped": {"not proven", "not proven"},
		"altered": {"memberships", "memberships"}, "raised": {"attributes", "attributes"},
	},
	role.SQLReady: {
		"absent": {"no longer has", "no longer has"}, "shut": {"group, password, log-in", "as it is"}, "open": {"admit", "not proven"},
		"half": {"(password): delete it", "not proven"}, "closed": {"(log-in): delete it", "as it is"},
		"grouped": {"(group): delete it", "not proven"},
		"altered": {"memberships", "memberships"}, "raised": {"attributes", "attributes"},
	},
	role.Ready: {
		"absent": {"no longer has", "no longer has"}, "shut": {"group, password, log-in", "group, password, log-in"},
		"open": {"as it is", "as it is"}, "half": {"(password): a rotation", "(password): a rotation"},
		"closed": {"(log-in): a rotation", "(log-in): a rotation"}, "grouped": {"(group): delete it", "(group): delete it"},
		"altered": {"memberships", "memberships"}, "raised": {"attributes", "attributes"},
	},
	role.Revoked: shutOut, role.Expired: shutOut,
}

// shutOut: who is to be out is out wherever nothing is open, whatever else became of the role.
var shutOut = map[string][2]string{
	"absent": {"as it is", "as it is"}, "shut": {"as it is", "as it is"}, "closed": {"as it is", "as it is"},
	"altered": {"as it is", "as it is"}, "open": {"let it in", "let it in"}, "half": {"let it in", "let it in"},
	"grouped": {"let it in", "let it in"}, "raised": {"let it in", "let it in"},
}

func TestReconciled(t *testing.T) {
	for status, byLook := range reconciliations {
		for look, found := range looks {
			for i, done := range []bool{true, false} {
				want := byLook[look][i]
				step, err := role.Role{Status: status}.Reconciled(done, found)
				switch {
				case err == nil && want == "as it is" && step == "":
				case err == nil && string(step) == want:
				case fault.Has(err, fault.ManagedRoleConflict) && strings.Contains(err.Error(), want):
				default:
					t.Errorf("%s, done: %t, %s: %q, %v; want %s", status, done, look, step, err, want)
				}
				if _, refused := status.Decide(step); step != "" && refused != nil {
					t.Errorf("%s, %s: %v", status, look, refused)
				}
			}
		}
	}
	for _, status := range role.Statuses {
		changing := slices.Contains([]role.Status{role.Updating, role.Removed}, status) // never without a change, or not at all
		if (reconciliations[status] == nil) != changing {
			t.Errorf("%s is not tested", status)
		}
	}
}
