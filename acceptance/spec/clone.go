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
	{Name: "a clone of a backup that predates additional roles has none", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Clonable()
		s.OK(s.Connects(made.Login()).Write("kept"))
		file := ada.FinishesBackup(made.ID)
		s.OK(s.Predate(made, file))
		copied := ada.Clones(made, NewClone{Name: s.Name("copy"), Filename: &file})
		s.hasNotes(ada, copied, "kept")
		s.Refused(refusal(ada.CreateRole(copied.ID, NewRole{"Reports", "custom", 1, "one"})), "CUSTOM_ROLE_REQUIRES_V3_CLONE")
		ada.AddsRole(made, "Reports", "custom")
	}},
	{Name: "a repeated request with the same key gets the same clone and password", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Clonable()
			ask := NewClone{Name: s.Name("copy"), IdempotencyKey: "clone-1"}
			first := must(ada.Clone(made, ask))(s)
			again := must(ada.Clone(made, ask))(s)
			s.That(again.Operation.ID == first.Operation.ID && again.Database.ID == first.Database.ID &&
				again.Database.Password == first.Database.Password, "the second answer is %+v; the first was %+v", again, first)
			other := ask
			other.Name = s.Name("other")
			s.Refused(refusal(ada.Clone(made, other)), "DATABASE_STATE_CONFLICT")
			ada.Follows(first.Operation)
			copied := Created{CreatedDatabase: first.Database}
			s.OK(s.OnServer.SetPassword(copied.Login(), "chosen by the owner"))
			again = must(ada.Clone(made, ask))(s)
			s.That(again.Database.Password == "" && again.Database.ConnectionString == "", "the replay tells the old password")
			s.That(len(ada.SeesAll()) == 2, "%d databases exist", len(ada.SeesAll()))
		}},
	{Name: "each end of a clone is one event of its source, and what was not made leaves nothing",
		Needs: []Ability{Restoring, HasReceivers}, Play: func(s *Stage) {
			ada, made := s.Clonable()
			hook := ada.Hooks(s.receiver(), made.ID)
			name, taken := s.Name("copy"), s.Name("taken")
			asked := must(ada.Clone(made, NewClone{Name: name}))(s)
			must(ada.Operations.Cancel(ctx, asked.Operation.ID))(s)
			s.isCloneEvent(hook, 1, "canceled", made)
			ada.Clones(made, NewClone{Name: name})
			s.isCloneEvent(hook, 2, "succeeded", made)
			s.OK(s.Operator.MakeForeign(taken))
			failed := ada.Follows(must(ada.Clone(made, NewClone{Name: taken}))(s).Operation)
			s.That(failed.Status == "failed" && failed.Error.Code == "VALIDATION_ERROR", "it is %+v", failed)
			s.isCloneEvent(hook, 3, "failed", made)
			s.That(len(ada.SeesAll()) == 2, "%d databases exist", len(ada.SeesAll()))
		}},
}

// refusingClones need no agent that restores.
var refusingClones = []Scenario{
	{Name: "only the owner of an enrolled database clones it, with a full-account key", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask := NewClone{Name: s.Name("copy")}
		s.Refused(refusal(ada.Clone(made, ask)), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(made.ID, "clone"))
		s.Refused(refusal(s.WithKey(ada.Account, made.ID).Clone(made, ask)), "KEY_SCOPE_DENIED")
		s.Refused(refusal(s.Customer("pro").Clone(made, ask)), "DATABASE_NOT_FOUND")
		s.That(len(ada.SeesAll()) == 1, "a refused clone had an effect")
	}},
	{Name: "a clone takes a place in the quota, and a name of its own", Play: func(s *Stage) {
		ada, made := s.Clonable()
		s.OK(s.Operator.SetQuota(ada.Account, 1))
		s.Refused(refusal(ada.Clone(made, NewClone{Name: s.Name("copy")})), "PLAN_LIMIT")
		s.OK(s.Operator.SetQuota(ada.Account, 2))
		for _, name := range []string{made.Name, "postgres", "C", ""} {
			s.Refused(refusal(ada.Clone(made, NewClone{Name: name})), "VALIDATION_ERROR", "name")
		}
		s.That(len(ada.SeesAll()) == 1, "a refused clone had an effect")
	}},
	{Name: "only a verified backup of the same database is cloned", Play: func(s *Stage) {
		ada, made := s.Clonable()
		other := ada.Creates("other")
		theirs := ada.FinishesBackup(other.ID)
		ask := func(file backup.Filename) error {
			return refusal(ada.Clone(made, NewClone{Name: s.Name("copy"), Filename: &file}))
		}
		s.Refused(ask(theirs), "BACKUP_NOT_FOUND")
		for _, name := range []backup.Filename{"latest", "", "../../etc/passwd"} {
			s.Refused(ask(name), "INVALID_BACKUP_FILENAME")
		}
		s.OK(s.Spoil(made))
		ada.Follows(ada.BacksUp(made.ID))
		s.Refused(ask(ada.ListsBackups(made.ID)[0].Filename), "BACKUP_NOT_VERIFIED")
	}},
	{Name: "a profile of query timeouts is never lost by a clone", Play: func(s *Stage) {
		ada, made := s.Clonable()
		ada.SetsTimeouts(made.ID, "short", "one")
		s.Refused(refusal(ada.Clone(made, NewClone{Name: s.Name("copy")})), "QUERY_TIMEOUT_CLONE_REQUIRES_RECONFIGURATION")
	}},
}

// NewClone asks for a clone; without a filename or a moment, of the source as it is.
type NewClone struct {
	Name           string
	Filename       *backup.Filename
	At             *string
	IdempotencyKey string
}

// Clone asks for a clone.
func (c Client) Clone(of Created, n NewClone) (wire.ClonedDatabase, error) {
	body := wire.CloneDatabase{Name: n.Name, DisplayName: "A copy", Filename: n.Filename, PointInTime: n.At}
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

func (s *Stage) isCloneEvent(hook wire.WebhookSecret, n int, status string, of Created) {
	s.Helper()
	e := s.reads(s.Hears(hook, n)[n-1])
	s.That(string(e.Event) == "clone."+status && string(e.Data.Status) == status && e.Data.DatabaseID == of.ID &&
		e.Data.DatabaseName == of.Name, "%+v", e)
}
