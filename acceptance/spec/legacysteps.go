package spec

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// overSingleLogins has stories play over databases with a single login.
func overSingleLogins(list []Scenario) []Scenario {
	list = slices.Clone(list)
	for i, sc := range list {
		list[i].Play = func(s *Stage) {
			s.legacy = true
			sc.Play(s)
		}
	}
	return list
}

// CreatesSingle makes a database with a single login that the operator has activated.
func (c *Customer) CreatesSingle(word string) Created {
	c.stage.Helper()
	made := c.CreatesAs(NewDatabase{Name: c.stage.Name(word), DisplayName: word, RoleModel: "single_login"})
	c.stage.activates(made, true)
	return made
}

// activates has the operator let a database have additional roles, or withdraw that.
func (s *Stage) activates(db Created, on bool) {
	s.Helper()
	s.OK(s.Operator.ActivateLegacyRoles(db.ID, on))
}

// OptsIn has the owner of an activated database opt in, until its overlay stands.
func (c *Customer) OptsIn(db Created) Created {
	c.stage.Helper()
	c.stage.Eventually("the overlay is active", func() bool {
		return must(c.LegacyRoles.OptIn(ctx, db.ID))(c.stage).Status == "active"
	})
	return db
}

// Prepares has the server make a reserved role, and learns what the owner is to run.
func (c *Customer) Prepares(db Created, r wire.Role) wire.ConnectGrant {
	c.stage.Helper()
	told := must(c.LegacyRoles.Prepare(ctx, db.ID, r.RoleID))(c.stage)
	c.stage.That(told.Status == "sql_ready" && told.RoleID == r.RoleID && told.Username == r.Username &&
		told.DatabaseName == db.Name && told.GrantSQL != "", "it tells %+v", told)
	return told
}

// Reconciles finds out what has become of a role.
func (c *Customer) Reconciles(db Created, r wire.Role) wire.ListedRole {
	c.stage.Helper()
	return must(c.LegacyRoles.Reconcile(ctx, db.ID, r.RoleID))(c.stage)
}

// asksRole is a request for a role.
func asksRole(name string, limit int) NewRole {
	return NewRole{DisplayName: name, AccessProfile: "read_only", ConnectionLimit: limit, IdempotencyKey: "add " + name}
}

// tryLegacy calls each of the routes about additional roles of a database with a single login.
func (s *Stage) tryLegacy(c *Customer, of id.DatabaseID, r id.RoleID, change id.OperationID) map[string]error {
	all := map[string]error{
		"opt in":    refusal(c.LegacyRoles.OptIn(ctx, of)),
		"list":      refusal(c.LegacyRoles.List(ctx, of, false)),
		"create":    refusal(c.CreateRole(of, asksRole("tried", 1))),
		"prepare":   refusal(c.LegacyRoles.Prepare(ctx, of, r)),
		"admit":     refusal(c.LegacyRoles.Admit(ctx, of, r)),
		"reconcile": refusal(c.LegacyRoles.Reconcile(ctx, of, r)),
		"reveal":    refusal(c.LegacyRoles.Reveal(ctx, of, r)),
		"change":    refusal(c.ChangeRole(of, r, "rotate", "tried")),
		"look":      refusal(c.LegacyRoles.GetChange(ctx, of, r, change)),
		"replay":    refusal(c.ReplayChange(of, r, change)),
		"remove":    refusal(c.LegacyRoles.Remove(ctx, of, r)),
	}
	s.That(len(all) == 11, "these are %d routes", len(all))
	return all
}

// refusesAll fails the story unless each of the calls was refused with the code.
func (s *Stage) refusesAll(calls map[string]error, code fault.Code) {
	s.Helper()
	for what, err := range calls {
		s.Log(what)
		s.Refused(err, code)
	}
}
