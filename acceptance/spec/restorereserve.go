package spec

import (
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

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
