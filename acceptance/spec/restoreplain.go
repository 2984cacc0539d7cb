package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
)

// restoringPlain are restores of databases with a single login.
var restoringPlain = []Scenario{
	{Name: "a database with a single login is restored in one call", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.single()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		file := ada.FinishesBackup(made.ID)
		s.OK(session.Write("lost"))
		done := s.WithKey(ada.Account, made.ID).RestoresPlain(made, file)
		s.That(done.Status == "succeeded" && string(*done.Result) == `{"filename":"`+string(file)+`","notes":[]}`,
			"it ended as %+v: %+v", done, done.Error)
		s.Eventually("the session of before ends", session.Ended)
		s.hasNotes(ada, made, "kept")
		s.Refused(refusal(ada.Restores.Advance(ctx, done.ID)), "OPERATION_NOT_FOUND")
	}},
	{Name: "a restore in one call is for enrolled databases with a single login, and needs its consent", Play: func(s *Stage) {
		ada, made := s.single()
		start := func(of Created, file backup.Filename, b wire.Disconnect) error {
			return refusal(ada.Restores.Start(ctx, of.ID, file, b))
		}
		const none = backup.Filename("20260101_000000.sql.gz")
		file := ada.FinishesBackup(made.ID)
		s.Refused(start(made, file, wire.Disconnect{}), "VALIDATION_ERROR", "confirmDisconnect")
		s.Refused(start(made, none, disconnect), "BACKUP_NOT_FOUND")
		s.Refused(start(made, "latest", disconnect), "INVALID_BACKUP_FILENAME")
		s.Refused(refusal(ada.Reserve(made.ID, file, "deploy-1")), "MANAGED_ROLE_CONFLICT")
		s.OK(s.Spoil(made))
		ada.Follows(ada.BacksUp(made.ID))
		s.Refused(start(made, ada.ListsBackups(made.ID)[0].Filename, disconnect), "BACKUP_NOT_VERIFIED")

		managed := ada.Creates("managed")
		s.Refused(start(managed, none, disconnect), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(managed.ID, "restore"))
		s.Refused(start(managed, none, disconnect), "BACKUP_NOT_FOUND")
	}},
}

// single is an owner with an enrolled database that has a single login.
func (s *Stage) single() (*Customer, Created) {
	s.Helper()
	ada := s.Customer("pro")
	made := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
	s.OK(s.Operator.Enroll(made.ID, "restore"))
	return ada, made
}
