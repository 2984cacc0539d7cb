package spec

import (
	"slices"
	"strings"

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
		s.That(done.Status == "succeeded" && restoredTo(done, `{"filename":"`+string(file)+`","notes":[],"change":`, 2, 1),
			"it ended as %+v: %+v", done, done.Error)
		s.Eventually("the session of before ends", session.Ended)
		s.hasNotes(ada, made, "kept")
		s.Refused(refusal(ada.Restores.Advance(ctx, done.ID)), "OPERATION_NOT_FOUND")
	}},
	{Name: "a restore that removes nearly all rows needs another consent", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.single()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		file := ada.FinishesBackup(made.ID)
		s.OK(session.Write(strings.Fields("a b c d e f g h i j")...))
		done := ada.RestoresPlain(made, file)
		s.That(done.Status == "failed" && done.Error != nil && done.Error.Code == "RESTORE_SHRINKS" &&
			strings.Contains(done.Error.Message, "11 rows") && done.Result == nil, "it ended as %+v: %+v", done, done.Error)
		s.That(session.Alive(), "a session was ended")
		body := consent
		body.ConfirmShrink = true
		done = ada.Follows(must(ada.Restores.Restore(ctx, made.ID, file, body))(s).Operation)
		s.That(restoredTo(done, "", 11, 1) && strings.HasSuffix(string(*done.Result), `,"confirmShrink":true}`),
			"it ended as %+v: %+v", done, done.Error)
		s.hasNotes(ada, made, "kept")
	}},
	{Name: "a restore in one call is for enrolled databases with a single login, and needs its consent", Play: func(s *Stage) {
		ada, made := s.single()
		start := func(of Created, file backup.Filename, b wire.RestoreBackup) error {
			return refusal(ada.Restores.Restore(ctx, of.ID, file, b))
		}
		const none = backup.Filename("20260101_000000.sql.gz")
		file := ada.FinishesBackup(made.ID)
		s.Refused(start(made, file, wire.RestoreBackup{}), "VALIDATION_ERROR", "confirmDisconnect")
		s.Refused(start(made, none, consent), "BACKUP_NOT_FOUND")
		s.Refused(start(made, "latest", consent), "INVALID_BACKUP_FILENAME")
		s.Refused(refusal(ada.Reserve(made.ID, file, "deploy-1")), "MANAGED_ROLE_CONFLICT")
		s.OK(s.Spoil(made))
		ada.Follows(ada.BacksUp(made.ID))
		s.Refused(start(made, ada.ListsBackups(made.ID)[0].Filename, consent), "BACKUP_NOT_VERIFIED")

		managed := ada.Creates("managed")
		s.Refused(start(managed, none, consent), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(managed.ID, "restore"))
		s.Refused(start(managed, none, consent), "BACKUP_NOT_FOUND")
	}},
}

// consent is to a restore of a database with a single login.
var consent = wire.RestoreBackup{ConfirmDisconnect: true}

// restoringRoles are restores of databases that have additional roles.
var restoringRoles = overSingleLogins([]Scenario{
	{Name: "roles outlive a restore from a backup or a dump, and it waits until none is being made", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Operator.Enroll(made.ID, "restore"))
			s.OK(s.Operator.Enroll(made.ID, "restore-upload"))
			session := s.Connects(made.Login())
			s.OK(session.Write("kept"))
			_, login := ada.AddsLogin(made, "Reports", "read_only")
			revoked := ada.AddsRole(made, "Old", "custom")
			ada.Revokes(made, revoked)
			file := ada.FinishesBackup(made.ID)
			s.OK(session.Write("lost"))
			u := ada.Uploads(made.ID, ada.dumpOf("brought"))

			half := must(ada.CreateRole(made.ID, asksRole("half", 1)))(s)
			for range 2 {
				s.Refused(refusal(ada.Restores.Restore(ctx, made.ID, file, consent)), "LEGACY_ROLE_CONFLICT")
				s.Refused(refusal(ada.Restores.CompleteUpload(ctx, made.ID, completing(u))), "LEGACY_ROLE_CONFLICT")
				ada.Prepares(made, half)
			}
			ada.Deletes(made, half)
			before := ada.ListsRoles(made)
			for _, restore := range []struct {
				do   func() wire.Operation
				note string
			}{
				{func() wire.Operation { return ada.RestoresPlain(made, file) }, "kept"},
				{func() wire.Operation { return ada.Completes(made.ID, u) }, "brought"},
			} {
				sessions := s.bothIn(login)
				done := restore.do()
				s.That(done.Status == "succeeded", "it ended as %+v: %+v", done, done.Error)
				s.Eventually("the sessions of before end", func() bool { return sessions[0].Ended() && sessions[1].Ended() })
				s.hasNotes(ada, made, restore.note)
				s.bothIn(login)
				s.That(slices.Equal(usernames(ada.ListsRoles(made)), usernames(before)) &&
					ada.FindsRole(made, revoked).Status == "revoked", "the roles are %+v", ada.ListsRoles(made))
				s.That(must(ada.LegacyRoles.OptIn(ctx, made.ID))(s).Status == "active", "the overlay is gone")
			}
			ada.AddsLogin(made, "More", "read_write")
		}},
})

// single is an owner with an enrolled database that has a single login.
func (s *Stage) single() (*Customer, Created) {
	s.Helper()
	ada := s.Customer("pro")
	made := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
	s.OK(s.Operator.Enroll(made.ID, "restore"))
	return ada, made
}
