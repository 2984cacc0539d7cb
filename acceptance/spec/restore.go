package spec

import (
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// restoring are managed restores that are carried out.
var restoring = []Scenario{
	{Name: "a managed restore brings back what the backup holds", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Owner()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		file := ada.FinishesBackup(made.ID)
		s.OK(session.Write("lost"))
		o := ada.Reserves(made, file, "deploy-1")
		s.That(o.Type == "restore" && o.Status == "queued" && o.Stage == "queued" && o.Progress == 0, "it began as %+v", o)
		s.That(session.Alive(), "the reservation has ended a session")

		done := ada.RestoresManaged(made, file, "deploy-1")
		s.That(done.ID == o.ID && done.Progress == 100 && done.Error == nil && done.FinishedAt != nil &&
			restoredTo(done, `{"filename":"`+string(file)+`","notes":[],"change":`, 2, 1), "it ended as %+v, %s", done, *done.Result)
		s.Eventually("the session of before ends", session.Ended)
		s.hasNotes(ada, made, "kept")
		s.OK(s.Connects(made.Login()).Write("new"))
		s.hasNotes(ada, made, "kept", "new")

		again := ada.Advances(done)
		s.That(again.Status == "succeeded" && again.FinishedAt.Equal(*done.FinishedAt), "it is %+v", again)
		log := ada.ReadsActivity(made.ID)
		acted := func(action string) int {
			return len(slices.DeleteFunc(slices.Clone(log), func(e wire.Activity) bool { return string(e.Action) != action }))
		}
		s.That(acted("restore.requested") == 1 && acted("restore.finished") == 1, "the log is %+v", log)
	}},
	{Name: "a managed restore says before its switch what it changes, and more than nine tenths need a consent",
		Needs: []Ability{Restoring}, Play: func(s *Stage) {
			ada, made := s.Owner()
			session := s.Connects(made.Login())
			s.OK(session.Write("kept"))
			file := ada.FinishesBackup(made.ID)
			s.OK(session.Write(strings.Fields("a b c d e f g h i j")...))
			o := ada.Reserves(made, file, "deploy-1")
			var failed error
			s.Eventually("the restore has failed", func() bool {
				_, failed = ada.Advance(o)
				return failed != nil
			})
			s.Refused(failed, "RESTORE_OPERATION_TERMINAL")
			s.That(strings.Contains(failed.Error(), "RESTORE_SHRINKS"), "it has failed with %v", failed)
			s.That(session.Alive(), "a session was ended")

			body := wire.ReserveRestore{BackupFilename: file, ConfirmShrink: true}
			s.Refused(refusal(ada.Restores.Reserve(ctx, made.ID, body, apiclient.IdempotencyKey("deploy-1"))), "MANAGED_ROLE_CONFLICT")
			o = must(ada.Restores.Reserve(ctx, made.ID, body, apiclient.IdempotencyKey("deploy-2")))(s).Operation
			s.Eventually("the copy is ready", func() bool { o = ada.Advances(o); return o.Stage == "ready" })
			s.That(o.Status == "running" && restoredTo(o, "", 11, 1), "before the switch it is %+v", o)
			s.That(session.Alive(), "a session was ended")
			s.Eventually("the restore has succeeded", func() bool { o = ada.Advances(o); return o.Status == "succeeded" })
			s.That(restoredTo(o, "", 11, 1), "it ended as %+v", o)
			s.hasNotes(ada, made, "kept")
		}},
	{Name: "while a restore runs, the database is for nothing else, and its backup stays", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Extender()
			role, file := ada.AddsRole(made, "Reports", "custom"), ada.FinishesBackup(made.ID)
			o := ada.Advances(ada.Reserves(made, file, "deploy-1"))
			s.That(o.Status == "running", "it is %+v", o)
			s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
			s.Refused(refusal(ada.SetLifecycle(made.ID, "stop")), "DATABASE_STATE_CONFLICT")
			s.Refused(refusal(ada.SetQueryTimeouts(made.ID, "short", "one")), "DATABASE_STATE_CONFLICT")
			s.Refused(refusal(ada.ChangeExtension(made.ID, "citext", "install", "one")), "EXTENSION_MUTATION_UNAVAILABLE")
			_, err := ada.CreateRole(made.ID, NewRole{"More", "custom", 1, "one"})
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
			s.Refused(refusal(ada.ChangeRole(made.ID, role.RoleID, "rotate", "one")), "MANAGED_ROLE_CONFLICT")
			s.Refused(refusal(ada.RotateLogin(made.ID, "owner", "one")), "MANAGED_ROLE_CONFLICT")
			s.Refused(refusal(ada.Reserve(made.ID, file, "deploy-2")), "MANAGED_ROLE_CONFLICT")
			s.Refused(ada.Backups.Delete(ctx, made.ID, file), "BACKUP_CONFLICT")
			s.That(ada.RestoresManaged(made, file, "deploy-1").ID == o.ID, "it is another one")
			s.OK(ada.Backups.Delete(ctx, made.ID, file))
			ada.Rotates(made, role, "two")
		}},
	{Name: "passwords are those of now, and what was removed since stays away", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		kept, old := ada.AddsLogin(made, "Kept", "read_only")
		file := ada.FinishesBackup(made.ID)
		ada.Deletes(made, role)
		ada.Rotates(made, kept, "rotate-1")
		ada.RestoresManaged(made, file, "deploy-1")
		s.ShutOut(login)
		s.ShutOut(old)
		s.Connects(ada.Reveals(made, kept).Login())
		s.Connects(made.Login())
	}},
	{Name: "a saved profile of query timeouts is in force in the restored database too", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			file := ada.FinishesBackup(made.ID)
			before := ada.SetsTimeouts(made.ID, "short", "one")
			ada.RestoresManaged(made, file, "deploy-1")
			after := ada.SeesTimeouts(made.ID)
			s.That(after.DesiredProfile == "short" && after.EffectiveProfile == "short" && after.Current != nil &&
				after.Current.StatementTimeoutMs == before.Current.StatementTimeoutMs, "it is %+v", after)
			s.That(after.DatabaseOID != nil && *after.DatabaseOID != *before.DatabaseOID, "it is bound to %d", *before.DatabaseOID)
		}},
	{Name: "a restore that nobody advances for an hour is canceled", Needs: []Ability{Restoring, MovesTime}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Connects(made.Login()).Write("kept"))
		file := ada.FinishesBackup(made.ID)
		o := ada.Advances(ada.Reserves(made, file, "deploy-1"))
		s.OK(s.Clock.Advance(59 * time.Minute))
		s.That(must(ada.Operations.Get(ctx, o.ID))(s).Status == "running", "it has not been left alone")
		s.OK(s.Clock.Advance(time.Minute))
		s.That(ada.Follows(o).Status == "canceled", "it is not canceled")
		s.terminal(ada, made, o, file, "deploy-1")
		ada.RestoresManaged(made, file, "deploy-2")
	}},
	{Name: "each end of a restore is one event", Needs: []Ability{Restoring, HasReceivers}, Play: func(s *Stage) {
		ada, made := s.Owner()
		hook := ada.Hooks(s.receiver(), made.ID)
		file := ada.FinishesBackup(made.ID)
		s.Hears(hook, 1) // of the backup
		must(ada.Operations.Cancel(ctx, ada.Reserves(made, file, "deploy-1").ID))(s)
		s.isRestoreEvent(hook, 2, "canceled")
		ada.RestoresManaged(made, file, "deploy-2")
		s.isRestoreEvent(hook, 3, "succeeded")
	}},
}

func (s *Stage) isRestoreEvent(hook wire.WebhookSecret, n int, status string) {
	s.Helper()
	e := s.reads(s.Hears(hook, n)[n-1])
	s.That(string(e.Event) == "restore."+status && string(e.Data.Status) == status && e.Data.Error == nil, "%+v", e)
}
