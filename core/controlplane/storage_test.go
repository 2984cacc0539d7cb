package controlplane_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/storage"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

const aQuota = 100_000_000

// quota gives the account's databases so many bytes.
func (w *world) quota(bytes int64) {
	w.t.Helper()
	_, err := w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.DatabaseBytes = &bytes })
	ok(w.t, err)
}

// grown is what a round makes of a database of that size.
func (w *world) grown(name string, bytes int64) {
	w.t.Helper()
	w.server.SetSize(name, bytes)
	w.later(2 * time.Second)
}

// stands demands that record and server say the same of a database.
func (w *world) stands(what string, c databases.Created, want database.StorageStatus) {
	w.t.Helper()
	r, set := w.reached(c.Record.ID).Record(), w.server.Configured(c.Record.Name)
	equal(w.t, what+": status", r.StorageStatus, want)
	equal(w.t, what+": applied", r.SettingsApplied, r.SettingsGeneration)
	equal(w.t, what+": read-only", set.ReadOnly, want != database.StorageOK)
	equal(w.t, what+": closed", set.Closed, want == database.StorageClosed)
	equal(w.t, what+": lets in", w.logsIn(c), want != database.StorageClosed && r.Status == database.Active)
}

func sized(t *testing.T) (*world, databases.Created) {
	t.Helper()
	w := newWorld(t)
	c := w.made("shop")
	w.quota(aQuota)
	w.later(2 * time.Second)
	w.stands("a small database", c, database.StorageOK)
	return w, c
}

func TestADatabaseAboveItsQuota(t *testing.T) {
	w, c := sized(t)
	w.grown("shop", aQuota)
	w.stands("at the quota", c, database.StorageFull)
	equal(t, "size", w.reached(c.Record.ID).Record().SizeBytes, aQuota)
	w.grown("shop", aQuota/2)
	w.stands("below it", c, database.StorageOK)
	w.grown("shop", aQuota*2)
	w.stands("at 200 %", c, database.StorageClosed)
	w.grown("shop", 1)
	w.stands("smaller in vain", c, database.StorageClosed)
	for _, action := range []database.Event{database.Restart, database.Stop, database.Start} {
		must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), action))(t)
		w.stands(string(action), c, database.StorageClosed)
	}
	want := []audit.Action{audit.StorageFull, audit.StorageWithin, audit.StorageClosed}
	said := slices.DeleteFunc(w.activity(c.Record.ID), func(a audit.Action) bool { return !slices.Contains(want, a) })
	if !slices.Equal(said, want) {
		t.Errorf("the activity log has %v", said)
	}
}

func TestAnOperatorOpensAClosedDatabase(t *testing.T) {
	w, c := sized(t)
	opens := func(reason string) error {
		return errOf(w.Operator.OpenDatabase(w.ctx, c.Record.ID, "ada", reason))
	}
	refused(t, opens("not closed"), fault.DatabaseStateConflict)
	w.grown("shop", aQuota*2)
	refused(t, opens(""), fault.ValidationError)
	refused(t, errOf(w.Operator.OpenDatabase(w.ctx, "0189abcd-ef01-4234-8567-89abcdef0123", "ada", "x")), fault.DatabaseNotFound)
	ok(t, opens("they delete"))
	w.later(2 * time.Second)
	w.stands("opened", c, database.StorageFull)

	last := w.log(c.Record.ID)
	i := slices.IndexFunc(last, func(e audit.Entry) bool { return e.Actor == audit.Operator && e.Action == audit.StorageFull })
	if i < 0 || last[i].Details["reason"] != "they delete" || last[i].Details["operator"] != "ada" {
		t.Errorf("the activity log has %+v", last)
	}
}

func TestAChangeOfTheQuotaDecidesAgain(t *testing.T) {
	w, c := sized(t)
	w.grown("shop", aQuota*2)
	for _, step := range []struct {
		quota int64
		want  database.StorageStatus
	}{
		{aQuota * 3 / 2, database.StorageClosed}, {aQuota * 3, database.StorageOK}, {aQuota, database.StorageClosed},
	} {
		w.quota(step.quota)
		w.later(2 * time.Second)
		w.stands(fmt.Sprint("with a quota of ", step.quota), c, step.want)
		equal(t, "quota", w.reached(c.Record.ID).Record().StorageQuota(), step.quota)
	}
}

// A backup is under way, and the database's quota is enforced all the same.
func TestAQuotaBesideAnOpenOperation(t *testing.T) {
	w, c := sized(t)
	must(w.Backups.Start(w.ctx, w.reached(c.Record.ID)))(t)
	must(w.Work.RunNext(w.ctx))(t)
	w.grown("shop", aQuota)
	w.stands("while a backup is made", c, database.StorageFull)
}

func TestSizesOutliveEveryPart(t *testing.T) {
	t.Run("a process that dies between decision and push", func(t *testing.T) {
		w, c := sized(t)
		w.server.SetSize("shop", aQuota)
		if !dies(func() { _ = w.process(mortal(storage.CrashDecided)).Rounds.Once(w.ctx) }) {
			t.Fatal("it was not hit")
		}
		equal(t, "status", w.reached(c.Record.ID).Record().StorageStatus, database.StorageFull)
		equal(t, "read-only before", w.server.Configured("shop").ReadOnly, false)
		ok(t, w.process(quick()).Rounds.Once(w.ctx))
		w.stands("after the next process's round", c, database.StorageFull)
	})
	t.Run("an agent that begins anew", func(t *testing.T) {
		w, c := sized(t)
		w.grown("shop", aQuota)
		generation := w.reached(c.Record.ID).Record().SettingsGeneration
		w.server.ForgetSizes()
		w.later(2 * time.Second)
		w.stands("the same again", c, database.StorageFull)
		equal(t, "generation", w.reached(c.Record.ID).Record().SettingsGeneration, generation)
		w.grown("shop", aQuota/2)
		w.stands("smaller", c, database.StorageOK)
	})
	t.Run("an agent that is away, and one of another protocol", func(t *testing.T) {
		w, c := sized(t)
		log := &spy{}
		w.ports.Journal = log
		w.ControlPlane = w.process(quick())
		w.server.SetUnreachable(true)
		w.grown("shop", aQuota)
		w.server.SetUnreachable(false)
		w.outdated(true)
		w.grown("shop", aQuota)
		equal(t, "status", w.reached(c.Record.ID).Record().StorageStatus, database.StorageOK)
		w.outdated(false)
		w.later(2 * time.Second)
		w.stands("upgraded", c, database.StorageFull)
		if !slices.Contains(log.said(c.Record.ID), "storage.full") {
			t.Errorf("the journal has %v", log.said(c.Record.ID))
		}
	})
}

// A database that is written all the time is not stored all the time.
func TestSizesThatSayNothingNewAreNotStored(t *testing.T) {
	w, c := sized(t)
	w.grown("shop", aQuota/2)
	size := func() int64 { return w.reached(c.Record.ID).Record().SizeBytes }
	w.grown("shop", aQuota/2+aQuota/100)
	equal(t, "a hundredth more", size(), aQuota/2)
	w.later(time.Minute)
	w.grown("shop", aQuota/2+aQuota/100+1)
	equal(t, "after a while", size(), aQuota/2+aQuota/100+1)
}
