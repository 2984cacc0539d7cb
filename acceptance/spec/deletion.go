package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
)

// deleting is about databases that are deleted and come back.
var deleting = []Scenario{
	{Name: "a deleted database is gone, and comes back as it was", Both: true, Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Deletable()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		_, theirs := ada.AddsLogin(made, "Reports", "read_only")
		ada.Allows(made.ID, "127.0.0.0/8")
		bob := ada.member(made, "developer")
		selected := s.WithKey(ada.Account, made.ID)
		address := s.address()
		ada.Adds(made, address, "viewer")

		done := ada.Drops(made)
		s.That(session.Ended() && len(ada.SeesAll()) == 0 && len(selected.SeesAll()) == 0 && len(bob.SeesAll()) == 0, "it is there")
		s.ShutOut(made.Login())
		s.ShutOut(theirs)
		for _, c := range []*Customer{ada, bob, selected} {
			s.Refused(refusal(c.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
		}
		s.That(ada.Follows(done).ID == done.ID, "the owner does not see the operation")
		s.Refused(refusal(bob.Operations.Get(ctx, done.ID)), "OPERATION_NOT_FOUND")
		s.Refused(refusal(s.accepts(newcomer(s.MailsTo(address, 1)[0].Token()))), "INVITATION_NOT_FOUND")
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: made.Name, DisplayName: "again"})), "VALIDATION_ERROR", "name")
		ada.seesDeleted(made, done)

		result := ada.Recovers(made)
		want := deletion.Restored{Members: 1, AllowlistEntries: 1, KeyBindings: 2}
		s.That(result.DatabaseID == made.ID && result.Restored == want && len(result.Skipped.Members) == 0 &&
			len(result.Skipped.Keys) == 0, "the result is %+v", result)
		s.That(ada.Sees(made.ID).Status == "active", "it is %+v", ada.Sees(made.ID))
		s.OK(s.Connects(made.Login()).Write("more"))
		s.Connects(theirs)
		s.hasNotes(ada, made, "kept", "more")
		away := made.Login()
		away.From = Away
		s.Connects(away)
		for _, c := range []*Customer{bob, selected} {
			s.That(c.Sees(made.ID).ID == made.ID, "it is not seen")
		}
		people := must(ada.Members.List(ctx, made.ID))(s)
		s.That(len(people.Members) == 1 && len(people.Invitations) == 0, "the people are %+v", people)
		s.That(len(ada.seesTombstones()) == 0, "there is a tombstone")
	}},
	{Name: "a stopped database is deleted, and stopped when it comes back", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Deletable()
		s.OK(s.Connects(made.Login()).Write("kept"))
		ada.Sets(made.ID, "stop", "stopped")
		ada.Drops(made)
		ada.Recovers(made)
		s.That(ada.Sees(made.ID).Status == "stopped", "it is %+v", ada.Sees(made.ID))
		s.ShutOut(made.Login())
		ada.Sets(made.ID, "start", "active")
		s.OK(s.Connects(made.Login()).Write("more"))
	}},
	{Name: "who and what is gone by then is skipped, and told", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Deletable()
		bob, eve := ada.member(made, "viewer"), ada.member(made, "admin")
		revoked, replaced := s.WithKey(ada.Account, made.ID), s.WithKey(ada.Account, made.ID)
		ada.Drops(made)
		s.OK(s.Operator.RemoveMember(made.ID, eve.Account.Email))
		s.OK(s.Operator.RevokeKey(revoked.Key))
		fresh := must(s.Operator.ReplaceKey(replaced.Key))(s)
		r := ada.Recovers(made)
		s.That(r.Restored == deletion.Restored{Members: 1, KeyBindings: 2} &&
			slices.Equal(r.Skipped.Members, []id.UserID{eve.Account.UserID}), "the result is %+v", r)
		skipped := []id.KeyID{eve.Key.ID, revoked.Key.ID}
		slices.Sort(skipped)
		s.That(slices.Equal(r.Skipped.Keys, skipped), "the result is %+v; want %v", r, skipped)
		s.That(len(s.Hosts[0](fresh.Text).seesAll(s)) == 1 && len(bob.SeesAll()) == 1 && len(eve.SeesAll()) == 0, "others see it")
	}},
	{Name: "the deletion backup is downloaded by the owner alone, as long as the database is deleted", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Deletable()
			s.OK(s.Connects(made.Login()).Write("kept"))
			live := s.deletionBackup(ada, made.ID)
			ada.Drops(made)
			notes := must(s.Restore(must(ada.DownloadDeletionBackup(made.ID))(s)))(s)
			s.That(slices.Equal(notes, []string{"kept"}), "it holds %v", notes)
			foreign, missing := s.deletionBackup(s.Customer("pro"), made.ID), s.deletionBackup(ada, nobodysID)
			ada.Recovers(made)
			for _, a := range []Answer{live, foreign, missing, s.deletionBackup(ada, made.ID)} {
				s.That(a.is("DELETION_BACKUP_NOT_AVAILABLE") && bytes.Equal(a.Body, live.Body), "%d %s", a.Status, a.Body)
			}
			s.That(len(ada.ListsBackups(made.ID)) == 1 && ada.ListsBackups(made.ID)[0].ExpiresAt != nil, "it is no backup like others")
		}},
	{Name: "a deletion backup that the agent is too old to hand out stays what it is", Needs: []Ability{Restoring, AgesAgents},
		Play: func(s *Stage) {
			ada, made := s.Deletable()
			s.OK(s.Connects(made.Login()).Write("kept"))
			ada.Drops(made)
			before := ada.seesTombstones()
			s.OldAgent(true)
			s.Refused(refusal(ada.DownloadDeletionBackup(made.ID)), "AGENT_ROUTE_UNAVAILABLE")
			s.That(reflect.DeepEqual(ada.seesTombstones(), before), "it is %+v; it was %+v", ada.seesTombstones(), before)
			s.OldAgent(false)
			s.holds(must(ada.DownloadDeletionBackup(made.ID))(s), "kept")
		}},
	{Name: "a deletion that is canceled, or whose backup cannot be verified, leaves the database open", Alone: true,
		Needs: []Ability{Restoring}, Play: func(s *Stage) {
			ada, made := s.Deletable()
			s.OK(s.Connects(made.Login()).Write("kept"))
			s.stopsBatch()
			o := must(ada.Databases.Delete(ctx, made.ID))(s).Operation
			s.Refused(refusal(ada.Databases.Delete(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
			must(ada.Operations.Cancel(ctx, o.ID))(s)
			s.OK(s.Batch.Start())
			s.That(ada.Follows(o).Status == "canceled" && ada.Sees(made.ID).Status == "active", "it is %+v", ada.Sees(made.ID))
			s.Connects(made.Login())

			s.OK(s.Spoil(made))
			o = ada.Follows(must(ada.Databases.Delete(ctx, made.ID))(s).Operation)
			s.That(o.Status == "failed" && o.Error.Code == "BACKUP_NOT_VERIFIED", "it ended as %+v: %+v", o, o.Error)
			s.That(ada.Sees(made.ID).Status == "active" && len(ada.ListsBackups(made.ID)) == 0, "something is left")
			s.OK(s.Connects(made.Login()).Write("more"))
			s.OK(s.Operator.DeleteUnverified(made.ID, "the customer asked for it"))
			s.Eventually("it is deleted", func() bool { return len(ada.seesTombstones()) == 1 })
			t := ada.seesTombstones()[0]
			s.That(t.RecoveryStatus == "unavailable" && t.DeletionBackup == nil, "it is %+v", t)
			s.Refused(refusal(ada.Databases.Recover(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
			s.ShutOut(made.Login())

			s.OK(s.Operator.Undelete(made.ID, "it was the wrong one"))
			s.Eventually("it is back", func() bool { return len(ada.seesTombstones()) == 0 })
			s.That(ada.Sees(made.ID).Status == "active", "it is %+v", ada.Sees(made.ID))
			s.OK(s.Connects(made.Login()).Write("after"))
		}},
	{Name: "a recovery takes a place in the quota, and is one however often it is asked for", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Deletable()
			s.OK(s.Operator.SetQuota(ada.Account, 1))
			ada.Drops(made)
			other := ada.Creates("other")
			s.Refused(refusal(ada.Databases.Recover(ctx, made.ID)), "PLAN_LIMIT")
			s.OK(s.Operator.SetQuota(ada.Account, 2))
			first := must(ada.Databases.Recover(ctx, made.ID))(s).Operation
			s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: s.Name("third"), DisplayName: "third"})), "PLAN_LIMIT")
			for _, err := range s.atOnce(4, func(int) error {
				again, err := ada.Databases.Recover(ctx, made.ID)
				s.That(err != nil || again.Operation.ID == first.ID, "another one: %+v", again)
				return err
			}) {
				s.OK(err)
			}
			s.That(ada.Follows(first).Status == "succeeded", "it has failed")
			again := must(ada.Databases.Recover(ctx, made.ID))(s).Operation
			s.That(again.ID == first.ID && len(ada.SeesAll()) == 2, "it was recovered again: %+v", again)
			s.OK(s.Operator.Enroll(other.ID, "recover"))
			s.Refused(refusal(ada.Databases.Recover(ctx, other.ID)), "DATABASE_STATE_CONFLICT")
		}},
	{Name: "only the owner of an enrolled database deletes and recovers it, with a full-account key", Play: func(s *Stage) {
		ada, made := s.Owner()
		eve := s.Customer("pro")
		for name, ask := range map[string]func(c *Customer) error{
			"delete":  func(c *Customer) error { return refusal(c.Databases.Delete(ctx, made.ID)) },
			"recover": func(c *Customer) error { return refusal(c.Databases.Recover(ctx, made.ID)) },
		} {
			s.Refused(ask(ada), "FEATURE_NOT_AVAILABLE")
			s.OK(s.Operator.Enroll(made.ID, name))
			s.Refused(ask(s.WithKey(ada.Account, made.ID)), "KEY_SCOPE_DENIED")
			s.Refused(ask(eve), "DATABASE_NOT_FOUND")
		}
		s.Refused(refusal(ada.Databases.Recover(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
		s.Refused(refusal(s.WithKey(ada.Account, made.ID).Databases.ListDeleted().Page(ctx, apiclient.Page{})), "KEY_SCOPE_DENIED")
		s.That(len(ada.seesTombstones()) == 0 && ada.Sees(made.ID).Status == "active", "something was done")
	}},
	{Name: "each end of a deletion and of a recovery is one event", Alone: true, Needs: []Ability{Restoring, HasReceivers},
		Play: func(s *Stage) {
			ada, made := s.Deletable()
			hook := ada.Hooks(s.receiver(), made.ID)
			canceled := func(asked wire.OperationWithMessage, err error) {
				s.OK(err)
				must(ada.Operations.Cancel(ctx, asked.Operation.ID))(s)
				s.OK(s.Batch.Start())
			}
			s.stopsBatch()
			canceled(ada.Databases.Delete(ctx, made.ID))
			s.isEventOf(hook, 1, "delete.canceled", made)
			ada.Drops(made)
			s.isEventOf(hook, 2, "delete.succeeded", made)
			s.stopsBatch()
			canceled(ada.Databases.Recover(ctx, made.ID))
			s.isEventOf(hook, 3, "recover.canceled", made)
			ada.Recovers(made)
			s.isEventOf(hook, 4, "recover.succeeded", made)
			s.OK(s.Spoil(made))
			ada.Follows(must(ada.Databases.Delete(ctx, made.ID))(s).Operation)
			s.isEventOf(hook, 5, "delete.failed", made)
		}},
	{Name: "after its time a deleted database is purged, and its name is free", Needs: []Ability{Restoring, MovesTime},
		Play: func(s *Stage) {
			ada, made := s.Deletable()
			ada.FinishesBackup(made.ID)
			ada.Drops(made)
			t := ada.seesTombstones()[0]
			s.That(t.PurgeAfter.Sub(t.DeletedAt) == 7*24*time.Hour, "it is %+v", t)
			s.OK(s.Clock.Advance(7*24*time.Hour - time.Hour))
			s.That(ada.seesTombstones()[0].RecoveryStatus == "recoverable", "it is %+v", ada.seesTombstones()[0])
			s.OK(s.Clock.Advance(time.Hour))
			s.Eventually("it is purged", func() bool { return len(ada.seesTombstones()) == 0 })
			s.Refused(refusal(ada.Databases.Recover(ctx, made.ID)), "DATABASE_NOT_FOUND")
			s.Refused(refusal(ada.DownloadDeletionBackup(made.ID)), "DELETION_BACKUP_NOT_AVAILABLE")
			objects := must(s.Operator.ServerObjects())(s)
			s.That(!slices.ContainsFunc(objects, func(name string) bool {
				return strings.Contains(name, made.Name) || strings.Contains(name, strings.ReplaceAll(string(made.ID), "-", ""))
			}), "the server has %v", objects)
			ada.CreatesAs(NewDatabase{Name: made.Name, DisplayName: "again"})
		}},
}

// Deletable makes a customer on plan pro who has a database that may be deleted and recovered.
func (s *Stage) Deletable() (*Customer, Created) {
	s.Helper()
	ada, made := s.Owner()
	for _, route := range []string{"delete", "recover"} {
		s.OK(s.Operator.Enroll(made.ID, route))
	}
	return ada, made
}

// Drops deletes a database, and returns the operation as it ended.
func (c *Customer) Drops(db Created) wire.Operation {
	c.stage.Helper()
	asked := must(c.Databases.Delete(ctx, db.ID))(c.stage)
	o := asked.Operation
	c.stage.That(asked.Message != "" && o.Type == "delete" && o.DatabaseID == db.ID && !o.Status.Final(), "it began as %+v", asked)
	o = c.Follows(o)
	c.stage.That(o.Status == "succeeded", "the deletion is %s: %+v", o.Status, o.Error)
	return o
}

// Recovers recovers a database, and returns the result.
func (c *Customer) Recovers(db Created) (r deletion.RecoveryResult) {
	c.stage.Helper()
	asked := must(c.Databases.Recover(ctx, db.ID))(c.stage)
	o := asked.Operation
	c.stage.That(asked.Message != "" && o.Type == "recover" && o.DatabaseID == db.ID, "it began as %+v", asked)
	o = c.Follows(o)
	c.stage.That(o.Status == "succeeded", "the recovery is %s: %+v", o.Status, o.Error)
	c.stage.OK(json.Unmarshal(*o.Result, &r))
	return r
}

func (c *Customer) seesTombstones() []wire.DeletedDatabase {
	c.stage.Helper()
	return must(c.Databases.ListDeleted().Page(ctx, apiclient.Page{}))(c.stage).Data
}

// seesDeleted expects that a database is the only deleted one, as its operation says.
func (c *Customer) seesDeleted(db Created, o wire.Operation) {
	c.stage.Helper()
	var r deletion.Result
	c.stage.OK(json.Unmarshal(*o.Result, &r))
	list := c.seesTombstones()
	c.stage.That(len(list) == 1 && list[0].DeletionBackup != nil && r.DeletionBackup != nil, "%+v", list)
	t, b := list[0], list[0].DeletionBackup
	c.stage.That(t.ID == db.ID && t.Name == db.Name && t.DisplayName == db.DisplayName && t.RecoveryStatus == "recoverable" &&
		t.PurgeAfter.Equal(r.PurgeAfter) && t.PurgeAfter.After(t.DeletedAt), "it is %+v", t)
	c.stage.That(b.FileName == r.DeletionBackup.FileName && b.Format == "sql.gz" && b.SizeBytes > 0 && len(b.ChecksumSHA256) == 64 &&
		b.VerifiedAt != nil && b.DownloadURL != nil && *b.DownloadURL == "/api/v1/databases/"+string(db.ID)+"/deletion-backup",
		"its backup is %+v", b)
}

// DownloadDeletionBackup reads a deletion backup.
func (c Client) DownloadDeletionBackup(of id.DatabaseID) ([]byte, error) {
	d, err := c.Databases.DownloadDeletionBackup(ctx, of)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(d)
	return text, errors.Join(err, d.Close())
}

// seesAll are the databases that a key shows.
func (c Client) seesAll(s *Stage) []wire.Database {
	s.Helper()
	return must(c.Databases.List().Page(ctx, apiclient.Page{}))(s).Data
}

// deletionBackup asks for a deletion backup.
func (s *Stage) deletionBackup(c *Customer, of id.DatabaseID) Answer {
	s.Helper()
	return s.sends(Request{Method: "GET", Path: "/api/v1/databases/" + string(of) + "/deletion-backup", Key: c.Key.Text})
}

// isEventOf expects the n-th event that an endpoint hears.
func (s *Stage) isEventOf(hook wire.WebhookSecret, n int, name string, of Created) {
	s.Helper()
	e := s.reads(s.Hears(hook, n)[n-1])
	s.That(string(e.Event) == name && e.Data.DatabaseID == of.ID && e.Data.DatabaseName == of.Name &&
		strings.HasSuffix(name, "."+string(e.Data.Status)), "%+v", e)
}
