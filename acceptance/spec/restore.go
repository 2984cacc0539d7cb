package spec

import (
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
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
			string(*done.Result) == `{"filename":"`+string(file)+`","notes":[]}`, "it ended as %+v, %s", done, *done.Result)
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
		file := ada.FinishesBackup(made.ID)
		hook := ada.Hooks(s.receiver(), made.ID)
		must(ada.Operations.Cancel(ctx, ada.Reserves(made, file, "deploy-1").ID))(s)
		s.isRestoreEvent(hook, 1, "canceled")
		ada.RestoresManaged(made, file, "deploy-2")
		s.isRestoreEvent(hook, 2, "succeeded")
	}},
}

func (s *Stage) isRestoreEvent(hook wire.WebhookSecret, n int, status string) {
	s.Helper()
	e := s.reads(s.Hears(hook, n)[n-1])
	s.That(string(e.Event) == "restore."+status && string(e.Data.Status) == status && e.Data.Error == nil, "%+v", e)
}

// reserving are reservations that nobody advances to the switch. They need no agent that restores.
var reserving = []Scenario{
	{Name: "a reservation can be canceled, and its key is used up", Play: func(s *Stage) {
		ada, made := s.Owner()
		session, file := s.Connects(made.Login()), ada.FinishesBackup(made.ID)
		o := ada.Reserves(made, file, "deploy-1")
		s.That(ada.Reserves(made, file, "deploy-1").ID == o.ID, "the same request makes another one")
		s.Refused(refusal(ada.Reserve(made.ID, file, "deploy-2")), "MANAGED_ROLE_CONFLICT")
		s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
		ada.AddsRole(made, "Reports", "custom") // which it does not keep from being made
		canceled := must(ada.Operations.Cancel(ctx, o.ID))(s).Operation
		s.That(canceled.Status == "canceled", "it is %+v", canceled)
		s.terminal(ada, made, o, file, "deploy-1")
		s.That(session.Alive(), "a session was ended")
		ada.FinishesBackup(made.ID)
	}},
	{Name: "a key belongs to one restore of the account", Play: func(s *Stage) {
		ada, made := s.Owner()
		other := ada.Creates("other")
		first, second := ada.FinishesBackup(made.ID), ada.FinishesBackup(made.ID)
		theirs := ada.FinishesBackup(other.ID)
		o := ada.Reserves(made, first, "deploy-1")
		s.Refused(refusal(ada.Reserve(made.ID, second, "deploy-1")), "MANAGED_ROLE_CONFLICT")
		s.Refused(refusal(ada.Reserve(other.ID, theirs, "deploy-1")), "MANAGED_ROLE_CONFLICT")
		s.That(len(ada.ListsOperations(other.ID)) == 1, "it left an operation")
		bob := s.Customer("pro")
		home := bob.Creates("home")
		s.That(bob.Reserves(home, bob.FinishesBackup(home.ID), "deploy-1").ID != o.ID, "it is another account's")
	}},
	{Name: "only a verified backup of the same database is restored", Play: func(s *Stage) {
		ada, made := s.Owner()
		other := ada.Creates("other")
		theirs := ada.FinishesBackup(other.ID)
		for _, name := range []string{"20260101_000000.sql.gz", string(theirs)} {
			s.Refused(refusal(s.asking(ada).Reserve(made.ID, backup.Filename(name), s.Name("key"))), "MANAGED_ROLE_CONFLICT")
		}
		for _, name := range []string{"latest", "../../etc/passwd", "20260101_000000.sql"} {
			s.Refused(refusal(s.asking(ada).Reserve(made.ID, backup.Filename(name), s.Name("key"))), "INVALID_BACKUP_FILENAME")
		}
		s.OK(s.Spoil(made))
		ada.Follows(ada.BacksUp(made.ID))
		spoilt := ada.ListsBackups(made.ID)[0]
		s.That(spoilt.VerifiedAt == nil, "it is %+v", spoilt)
		s.Refused(refusal(s.asking(ada).Reserve(made.ID, spoilt.Filename, s.Name("key"))), "MANAGED_ROLE_CONFLICT")
		s.That(len(ada.ListsOperations(made.ID)) == 1, "they left operations")
	}},
	{Name: "a key reserves six times an hour, retries counted; another key goes on", Play: func(s *Stage) {
		ada, made := s.Owner()
		file := ada.FinishesBackup(made.ID)
		o := ada.Reserves(made, file, "deploy-1")
		for n := range 5 {
			host := s.Hosts[n%len(s.Hosts)](ada.Key.Text)
			s.That(must(host.Reserve(made.ID, file, "deploy-1"))(s).Operation.ID == o.ID, "it is another one")
		}
		for _, host := range s.Hosts {
			refused := s.Refused(refusal(host(ada.Key.Text).Reserve(made.ID, file, "deploy-1")), "RATE_LIMITED")
			s.That(refused.RetryAfter > 50*time.Minute && refused.RetryAfter <= time.Hour, "again after %s", refused.RetryAfter)
		}
		s.That(s.asking(ada).Reserves(made, file, "deploy-1").ID == o.ID, "another key finds another one")
	}},
	{Name: "reserving and advancing are not stored, and take exact requests", Play: func(s *Stage) {
		ada, made := s.Owner()
		file := ada.FinishesBackup(made.ID)
		reserve, key := made.path("/managed-restores"), map[string]string{"Idempotency-Key": "deploy-1"}
		good := `{"backupFilename":"` + string(file) + `"}`
		for _, c := range []struct {
			body   string
			header map[string]string
			code   fault.Code
		}{
			{good, nil, "VALIDATION_ERROR"}, {`{}`, key, "VALIDATION_ERROR"}, {``, key, "INVALID_JSON"},
			{strings.Replace(good, "}", `,"force":true}`, 1), key, "VALIDATION_ERROR"},
			{strings.Replace(good, "backupFilename", "filename", 1), key, "VALIDATION_ERROR"},
			{`{"backupFilename":7}`, key, "VALIDATION_ERROR"},
		} {
			s.Refused(s.unstored(s.asking(ada), reserve, c.body, c.header).refusal(), c.code)
		}
		answer := s.unstored(ada, reserve, good, key)
		s.That(answer.Status == 202, "%d %s", answer.Status, answer.Body)
		s.Refused(s.unstored(ada, advancing(nobodysID), "", nil).refusal(), "OPERATION_NOT_FOUND")
		backedUp := ada.ListsBackups(made.ID)[0].OperationID
		s.Refused(s.unstored(ada, advancing(backedUp), "", nil).refusal(), "OPERATION_NOT_FOUND")
		s.Refused(s.unstored(ada, advancing(backedUp), "{}", nil).refusal(), "VALIDATION_ERROR")
		selected := s.WithKey(ada.Account, made.ID)
		s.Refused(s.unstored(selected, reserve, good, key).refusal(), "KEY_SCOPE_DENIED")
		s.Refused(s.unstored(selected, advancing("X"), "", nil).refusal(), "KEY_SCOPE_DENIED")
	}},
}

// asking is the same customer with another key, which has reservations of its own.
func (s *Stage) asking(c *Customer) *Customer {
	s.Helper()
	return s.WithKey(c.Account)
}

func advancing(o id.OperationID) string {
	return "/api/v1/operations/" + string(o) + "/managed-restore/advance"
}

// unstored posts, and expects an answer that nobody may store.
func (s *Stage) unstored(c *Customer, path, body string, header map[string]string) Answer {
	s.Helper()
	all := map[string]string{}
	for name, value := range header {
		all[name] = value
	}
	if body != "" || strings.HasSuffix(path, "/managed-restores") {
		all["Content-Type"] = "application/json"
	}
	answer := s.sends(Request{
		Method: "POST", Path: path, Key: c.Key.Text, From: s.someAddress(), Header: all, Body: []byte(body),
	})
	s.That(answer.Header.Get("Cache-Control") == "no-store", "%s may be stored: %v", path, answer.Header)
	return answer
}

// terminal expects that a restore has ended for good.
func (s *Stage) terminal(c *Customer, of Created, o wire.Operation, file backup.Filename, key string) {
	s.Helper()
	s.Refused(refusal(c.Restores.Advance(ctx, o.ID)), "RESTORE_OPERATION_TERMINAL")
	s.Refused(refusal(c.Reserve(of.ID, file, key)), "RESTORE_OPERATION_TERMINAL")
}

// hasNotes expects what a backup of a database holds now.
func (s *Stage) hasNotes(c *Customer, of Created, notes ...string) {
	s.Helper()
	s.holds(c.Downloads(of.ID, c.FinishesBackup(of.ID)), notes...)
}

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
