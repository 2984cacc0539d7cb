package spec

import (
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
)

// cloning are clones that are made.
var cloning = []Scenario{
	{Name: "a clone has what its source has, for logins of its own", Both: true, Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Clonable()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		role, theirs := ada.AddsLogin(made, "Reports", "read_only")
		asked := must(ada.Clone(made, NewClone{Name: s.Name("copy")}))(s)
		o, copied := asked.Operation, Created{CreatedDatabase: asked.Database}
		s.That(o.Type == "clone" && o.DatabaseID == made.ID && !o.Status.Final() && copied.Status == "creating" &&
			copied.Password != "" && copied.Password != made.Password && copied.Environment == nil, "it began as %+v", asked)
		done := ada.Follows(o)
		s.That(done.Status == "succeeded" && done.Progress == 100 && string(*done.Result) ==
			fmt.Sprintf(`{"databaseId":%q,"name":%q,"notes":[]}`, copied.ID, copied.Name), "it ended as %+v: %+v", done, done.Error)
		s.That(ada.Sees(copied.ID).Status == "active", "it is %+v", ada.Sees(copied.ID))
		s.OK(s.Connects(copied.Login()).Write("more"))
		s.hasNotes(ada, copied, "kept", "more")
		s.That(session.Alive(), "a session of the source was ended")
		s.hasNotes(ada, made, "kept")

		s.Connects(ada.Reveals(made, role).Login())
		theirs.Database = copied.Login().Database
		s.ShutOut(theirs)
		if s.legacy { // a clone has neither its source's overlay nor the activation
			s.Refused(refusal(ada.LegacyRoles.OptIn(ctx, copied.ID)), "FEATURE_NOT_AVAILABLE")
			s.activates(copied, true)
			s.Refused(refusal(ada.CreateRole(copied.ID, asksRole("Reports", 1))), "LEGACY_ROLE_CONFLICT")
			ada.OptsIn(copied)
		}
		ada.AddsLogin(copied, "Reports", "read_only")
	}},
	{Name: "a clone from a backup holds what that holds", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Clonable()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		file := ada.FinishesBackup(made.ID)
		s.OK(session.Write("later"))
		ada.Sets(made.ID, "stop", "stopped")
		copied := ada.Clones(made, NewClone{Name: s.Name("copy"), Filename: &file})
		s.hasNotes(ada, copied, "kept")
		s.Connects(copied.Login())
		s.That(len(ada.ListsBackups(made.ID)) == 1 && ada.Sees(made.ID).Status == "stopped", "the source has changed")
		log := ada.ReadsActivity(made.ID)
		s.That(slices.ContainsFunc(log, func(e wire.Activity) bool { return e.Action == "clone.requested" }) &&
			slices.ContainsFunc(log, func(e wire.Activity) bool { return e.Action == "clone.finished" }), "the log is %+v", log)
	}},
	{Name: "a database with a single login is cloned as one", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.single()
		s.OK(s.Operator.Enroll(made.ID, "clone"))
		s.OK(s.Connects(made.Login()).Write("kept"))
		copied := ada.Clones(made, NewClone{Name: s.Name("copy")})
		s.hasNotes(ada, copied, "kept")
		s.Refused(refusal(ada.CreateRole(copied.ID, NewRole{"Reports", "custom", 1, "one"})), "MANAGED_ROLE_CONFLICT")
	}},
}

// NewClone asks for a clone; without a filename, of the source as it is.
type NewClone struct {
	Name           string
	Filename       *backup.Filename
	IdempotencyKey string
}

// Clone asks for a clone.
func (c Client) Clone(of Created, n NewClone) (wire.ClonedDatabase, error) {
	body := wire.CloneDatabase{Name: n.Name, DisplayName: "A copy", Filename: n.Filename}
	return c.Databases.Clone(ctx, of.ID, body, apiclient.IdempotencyKey(n.IdempotencyKey))
}

// Clones makes a clone, and waits until it stands.
func (c *Customer) Clones(of Created, n NewClone) Created {
	c.stage.Helper()
	asked := must(c.Clone(of, n))(c.stage)
	done := c.Follows(asked.Operation)
	c.stage.That(done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
	return Created{CreatedDatabase: asked.Database}
}

// Clonable is an owner with a database that is enrolled for clones.
func (s *Stage) Clonable() (*Customer, Created) {
	s.Helper()
	ada, made := s.Owner()
	s.OK(s.Operator.Enroll(made.ID, "clone"))
	return ada, made
}
