package role_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/role"
)

func TestPlan(t *testing.T) {
	soon, later := time.Unix(1000, 0), time.Unix(2000, 0)
	prepared := role.Login{Present: true, Password: role.NoPassword, Limit: 8}
	open := role.Login{Present: true, MayLogIn: true, Password: role.OurPassword, Limit: 8, InGroup: true}
	until := func(l role.Login, end *time.Time) role.Login { l.ValidUntil = end; return l }
	with := func(l role.Login, p role.PasswordState) role.Login { l.Password = p; return l }
	revoked, expired := role.Login{Present: true, Password: role.NoPassword}, role.Login{Present: true}
	for what, c := range map[string]struct {
		desired, observed role.Login
		want              []role.Action
	}{
		"made":                 {prepared, role.Login{}, []role.Action{role.CreateRole, role.SetLimit}},
		"made already":         {prepared, prepared, nil},
		"opened":               {open, prepared, []role.Action{role.JoinGroup, role.SetPassword, role.AllowLogin}},
		"opened already":       {open, open, nil},
		"opened without group": {role.Login{Present: true, MayLogIn: true}, prepared, []role.Action{role.AllowLogin}},
		"another password":     {open, with(open, role.OtherPassword), []role.Action{role.SetPassword}},
		"no password":          {open, with(open, role.NoPassword), []role.Action{role.SetPassword}},
		"a validity":           {until(open, &soon), open, []role.Action{role.SetPassword}},
		"another validity":     {until(open, &soon), until(open, &later), []role.Action{role.SetPassword}},
		"no validity":          {open, until(open, &soon), []role.Action{role.SetPassword}},
		"the same validity":    {until(open, &soon), until(open, &soon), nil},
		"revoked":              {revoked, open, []role.Action{role.ForbidLogin, role.ClearPassword}},
		"expired":              {expired, open, []role.Action{role.ForbidLogin}},
		"revoked when expired": {revoked, with(prepared, role.OtherPassword), []role.Action{role.ClearPassword}},
		"another limit":        {role.Login{Present: true, MayLogIn: true, Limit: 9}, open, []role.Action{role.SetLimit}},
		"removed":              {role.Login{}, prepared, []role.Action{role.RemoveRole}},
		"removed already":      {role.Login{}, role.Login{}, nil},
		"made and opened at once": {open, role.Login{}, []role.Action{
			role.CreateRole, role.SetLimit, role.JoinGroup, role.SetPassword, role.AllowLogin,
		}},
	} {
		if got := role.Plan(c.desired, c.observed); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Whatever stands: a plan that was carried out leaves nothing to do, at whatever action it was interrupted the rest is what is
// still missing, and a log-in is given last and taken first.
func TestPlanEndsAndMayBeInterrupted(t *testing.T) {
	end := time.Unix(1000, 0)
	states := []role.PasswordState{role.OtherPassword, role.OurPassword, role.NoPassword}
	rapid.Check(t, func(t *rapid.T) {
		login := func(name string) role.Login {
			l := role.Login{
				Present: true, MayLogIn: rapid.Bool().Draw(t, name+" log-in"), Limit: rapid.IntRange(0, 2).Draw(t, name+" limit"),
				InGroup:  rapid.Bool().Draw(t, name+" group"),
				Password: rapid.SampledFrom(states).Draw(t, name+" password"),
			}
			if l.Password == role.OurPassword && rapid.Bool().Draw(t, name+" validity") {
				l.ValidUntil = &end
			}
			if !rapid.Bool().Draw(t, name+" present") {
				return role.Login{}
			}
			return l
		}
		desired, observed := login("desired"), login("observed")
		plan := role.Plan(desired, observed)
		if i := slices.Index(plan, role.AllowLogin); i >= 0 && i != len(plan)-1 {
			t.Fatalf("the log-in is given before %v", plan[i+1:])
		}
		if i := slices.Index(plan, role.ForbidLogin); i > 0 {
			t.Fatalf("the log-in is taken after %v", plan[:i])
		}
		for i, a := range plan {
			if rest := role.Plan(desired, observed); !slices.Equal(rest, plan[i:]) {
				t.Fatalf("interrupted before %s: %v, want %v", a, rest, plan[i:])
			}
			observed = carriedOut(a, desired, observed)
		}
		if rest := role.Plan(desired, observed); len(rest) > 0 {
			t.Fatalf("after all of %v there is still %v", plan, rest)
		}
	})
}

// carriedOut is what a server has after an action.
func carriedOut(a role.Action, desired, observed role.Login) role.Login {
	switch a {
	case role.CreateRole:
		return role.Login{Present: true, Password: role.NoPassword}
	case role.ForbidLogin:
		observed.MayLogIn = false
	case role.ClearPassword:
		observed.Password = role.NoPassword
	case role.SetLimit:
		observed.Limit = desired.Limit
	case role.JoinGroup:
		observed.InGroup = true
	case role.SetPassword:
		observed.Password, observed.ValidUntil = role.OurPassword, desired.ValidUntil
	case role.AllowLogin:
		observed.MayLogIn = true
	case role.RemoveRole:
		return role.Login{}
	}
	return observed
}
