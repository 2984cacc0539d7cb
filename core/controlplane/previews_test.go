package controlplane_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// pipeline is a caller with a CI key of a new namespace of the account.
func (w *world) pipeline(of account.Account, name string) access.Caller {
	w.t.Helper()
	n := must(w.Operator.CreateNamespace(w.ctx, of.ID, name))(w.t)
	_, key, err := w.Operator.CreateCIKey(w.ctx, n.ID)
	ok(w.t, err)
	return w.admit(key)
}

func ofRef(ref string) previews.Request { return previews.Request{Ref: ref} }

func daily(ref string, hours int) previews.Request {
	return previews.Request{Ref: ref, TTLHours: &hours, ScheduledBackup: new(database.Daily)}
}

// opened makes the preview of a ref.
func (w *world) opened(c access.Caller, r previews.Request) previews.Opened {
	w.t.Helper()
	return must(w.Previews.Open(w.ctx, c, r))(w.t)
}

// seen is a preview as its pipeline sees it.
func (w *world) seen(c access.Caller, db id.DatabaseID) preview.Preview {
	w.t.Helper()
	return must(w.Previews.Get(w.ctx, must(w.Previews.Reach(w.ctx, c, db))(w.t)))(w.t)
}

// find is the preview that a ref has, as its pipeline sees it.
func (w *world) find(c access.Caller, ref string) (preview.Preview, error) {
	r, err := w.Previews.ReachRef(w.ctx, c, ref)
	if err != nil {
		return preview.Preview{}, err
	}
	return w.Previews.Get(w.ctx, r)
}

func TestAPreviewIsFoundByItsRef(t *testing.T) {
	w := newWorld(t)
	ci, app := w.pipeline(w.account, "web"), w.pipeline(w.account, "app")
	w.opened(ci, ofRef("main"))
	for what, err := range map[string]error{
		"another ref": errOf(w.find(ci, "Main")), "another namespace": errOf(w.find(app, "main")),
	} {
		if !fault.Has(err, fault.PreviewNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.clock.Advance(24 * time.Hour)
	equal(t, "its lease when its time is over", must(w.find(ci, "main"))(t).Lease, preview.Expired)
	ok(t, w.Operator.RevokeCIKey(w.ctx, ci.Key.ID))
	refused(t, errOf(w.find(ci, "main")), fault.PreviewNotFound)
}

// A preview of three days tells its password for as long.
func TestAReplayTellsThePasswordOfALongPreview(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	made := w.opened(ci, daily("main", 72))
	r := w.reached(made.Preview.DatabaseID).Record()
	equal(t, "its label", r.DisplayName, "Preview main")
	equal(t, "scheduled", r.NextBackupAt != nil, true)
	w.clock.Advance(provision.AgainFor + time.Hour)
	equal(t, "its password the next day", w.opened(ci, daily("main", 72)).Made.Password, made.Made.Password)
}

// Who knows a namespace and a ref knows the name of the preview to come, and cannot take it.
func TestNobodyTakesTheNameOfAPreview(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	name := preview.Name(ci.Key.NamespaceID, "main", 1)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request(name))), fault.ValidationError)
	equal(t, "its name", w.opened(ci, ofRef("main")).Made.Record.Name, name)
}

func TestAReplayTellsNoStalePassword(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	made := w.opened(ci, ofRef("main")).Made
	equal(t, "changed", w.server.DriftPassword(made.Username, "chosen by the owner"), true)
	again := w.opened(ci, ofRef("main")).Made
	equal(t, "its password", again.Password, "")
	equal(t, "its connection string", again.ConnectionString, "")
}

// Many requests for one ref at once make one preview, and all get it.
func TestConcurrentRequestsMakeOnePreview(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	const many = 20
	var all sync.WaitGroup
	var got [many]previews.Opened
	var errs [many]error
	for i := range many {
		all.Go(func() { got[i], errs[i] = w.Previews.Open(w.ctx, ci, ofRef("main")) })
	}
	all.Wait()
	ok(t, errors.Join(errs[:]...))
	fresh := 0
	for _, o := range got {
		equal(t, "its password", o.Made.Password, got[0].Made.Password)
		equal(t, "the preview", o.Preview, got[0].Preview)
		if o.Fresh {
			fresh++
		}
	}
	equal(t, "fresh ones", fresh, 1)
	equal(t, "databases", w.databases(), 1)
}

func TestPreviewsTakePlacesInTheQuota(t *testing.T) {
	w := newWorld(t)
	ci, most := w.pipeline(w.account, "web"), 2
	ok(t, errOf(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.MaxDatabases = &most })))
	w.made("shop")
	w.opened(ci, ofRef("one"))
	refused(t, errOf(w.Previews.Open(w.ctx, ci, ofRef("two"))), fault.PlanLimit)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("other"))), fault.PlanLimit)
}

// A preview whose creation fails leaves nothing, and its ref is free.
func TestAPreviewThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	w.refusing("EnsureDatabase", command.ReasonFailed)
	refused(t, errOf(w.Previews.Open(w.ctx, ci, ofRef("main"))), fault.AgentError)
	equal(t, "databases", w.databases(), 0)
	w.server.OnCall(nil)
	w.opened(ci, daily("main", 1))
}

// Killed at any point, the next process finishes: one preview, and the replay has a password that works.
func TestOpeningSurvivesEveryCrash(t *testing.T) {
	var ci access.Caller
	killed(t, databases.KindCreate, func(w *world) { ci = w.pipeline(w.account, "web") },
		func(w *world, cp *controlplane.ControlPlane) { _, _ = cp.Previews.Open(w.ctx, ci, ofRef("main")) },
		func(w *world) {
			equal(w.t, "logs in", w.logsIn(w.opened(ci, ofRef("main")).Made), true)
			equal(w.t, "databases", w.databases(), 1)
		})
}

// A key that is revoked after the preview was reached extends nothing, and nobody renews a lease that is over.
func TestWhatIsNotExtended(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	made := w.opened(ci, daily("main", 2)).Preview
	reached := must(w.Previews.Reach(w.ctx, ci, made.DatabaseID))(t)
	renewed := must(w.Previews.Extend(w.ctx, reached, 72))(t)
	equal(t, "stored", w.seen(ci, made.DatabaseID), renewed)
	w.clock.Advance(72 * time.Hour)
	equal(t, "the lease at its end", w.seen(ci, made.DatabaseID).Lease, preview.Expired)
	refused(t, errOf(w.Previews.Extend(w.ctx, reached, 72)), fault.PreviewLeaseEnded)
	refused(t, errOf(w.Previews.Open(w.ctx, ci, daily("main", 2))), fault.PreviewConflict)
	equal(t, "its log", len(w.log(made.DatabaseID)), 2)
	ok(t, w.Operator.RevokeCIKey(w.ctx, ci.Key.ID))
	refused(t, errOf(w.Previews.Extend(w.ctx, reached, 1)), fault.PreviewNotFound)
}

func TestOnlyTheNamespaceReachesAPreview(t *testing.T) {
	w := newWorld(t)
	ci, sibling := w.pipeline(w.account, "web"), w.pipeline(w.account, "app")
	theirs, _, _ := w.newAccount("mallory@example.org", account.Pro)
	stranger := w.pipeline(theirs, "web")
	plain, one := w.made("shop").Record.ID, w.opened(ci, ofRef("main")).Preview.DatabaseID
	var texts []string
	for _, c := range []struct {
		by access.Caller
		db id.DatabaseID
	}{{sibling, one}, {stranger, one}, {ci, plain}, {ci, "11111111-2222-4333-8444-555555555555"}} {
		err := errOf(w.Previews.Reach(w.ctx, c.by, c.db))
		refused(t, err, fault.PreviewNotFound)
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		equal(t, "the refusal", text, texts[0])
	}
	refused(t, errOf(w.Previews.Reach(w.ctx, w.caller, one)), fault.KeyScopeDenied)
	refused(t, errOf(w.Previews.Open(w.ctx, w.caller, ofRef("main"))), fault.KeyScopeDenied)
	equal(t, "the databases that a CI key sees", len(w.listed(ci)), 1)
	refused(t, errOf(w.Databases.Create(w.ctx, ci, request("mine"))), fault.KeyScopeDenied)

	reached := must(w.Previews.Reach(w.ctx, ci, one))(t)
	ok(t, w.Operator.RevokeCIKey(w.ctx, ci.Key.ID))
	refused(t, errOf(w.Previews.Extend(w.ctx, reached, 1)), fault.PreviewNotFound)
}

func TestTheBackupPolicyOfAPreview(t *testing.T) {
	w := newWorld(t)
	ci := w.pipeline(w.account, "web")
	made := w.opened(ci, ofRef("main")).Preview
	reached := must(w.Previews.Reach(w.ctx, ci, made.DatabaseID))(t)
	for _, schedule := range []database.Schedule{database.Daily, database.Daily, database.NoSchedule} {
		changed := must(w.Previews.SetSchedule(w.ctx, reached, schedule))(t)
		r := w.reached(made.DatabaseID).Record()
		equal(t, "the preview's", changed.Schedule, schedule)
		equal(t, "the record's", r.Schedule, schedule)
		equal(t, "a backup is due at a time", r.NextBackupAt != nil, schedule == database.Daily)
	}
	equal(t, "its log", len(w.log(made.DatabaseID)), 3)
	w.opened(ci, ofRef("main")) // it is the same request still
}

// The owner of an account sees the previews of its pipelines, and nobody else does.
func TestAnOwnerSeesPreviews(t *testing.T) {
	w := newWorld(t)
	web, app := w.pipeline(w.account, "web"), w.pipeline(w.account, "app")
	late := w.opened(web, daily("late", 3))
	w.opened(web, daily("early", 2))
	w.opened(app, ofRef("other"))
	refs := func(c access.Caller, of id.NamespaceID) (list []string) {
		found, next, err := w.Previews.Living(w.ctx, c, of, ports.Page{Limit: 9})
		if ok(t, err); next != nil {
			t.Error(next)
		}
		for _, l := range found {
			list = append(list, fmt.Sprint(l.Ref, " ", l.Lease))
		}
		return list
	}
	equal(t, "of a namespace", fmt.Sprint(refs(w.caller, web.Key.NamespaceID)), "[early active late active]")
	equal(t, "of all", len(refs(w.caller, "")), 3)
	w.clock.Advance(2 * time.Hour)
	equal(t, "once a lease is over", fmt.Sprint(refs(w.caller, web.Key.NamespaceID)), "[early expired late active]")
	must(w.Previews.Delete(w.ctx, must(w.Previews.Reach(w.ctx, web, late.Preview.DatabaseID))(t)))(t)
	found, _, err := w.Previews.Living(w.ctx, w.caller, web.Key.NamespaceID, ports.Page{})
	if ok(t, err); len(found) != 2 || found[0].OperationID != "" || found[1].OperationID == "" ||
		found[1].Kind != deletion.KindDelete {
		t.Errorf("%+v", found)
	}
	w.work(w.ControlPlane)
	equal(t, "once one is deleted", fmt.Sprint(refs(w.caller, web.Key.NamespaceID)), "[early expired]")
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	equal(t, "another account", len(refs(stranger, web.Key.NamespaceID)), 0)
	_, _, err = w.Previews.Living(w.ctx, web, "", ports.Page{})
	refused(t, err, fault.KeyScopeDenied)
}
