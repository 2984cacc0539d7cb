package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

func (w *world) suspends() {
	w.t.Helper()
	must(w.Operator.Suspend(w.ctx, w.account.ID, "unpaid"))(w.t)
}

func (w *world) resumes() {
	w.t.Helper()
	must(w.Operator.Resume(w.ctx, w.account.ID, "paid"))(w.t)
}

// toldWhy demands that an error says that the account is suspended, with the operator's reason.
func toldWhy(t *testing.T, err error) {
	t.Helper()
	if refused(t, err, fault.AccountSuspended); !strings.Contains(err.Error(), "unpaid") {
		t.Errorf("it does not say why: %v", err)
	}
}

// notToldWhy demands that it says so without the reason.
func notToldWhy(t *testing.T, err error) {
	t.Helper()
	if refused(t, err, fault.AccountSuspended); strings.Contains(err.Error(), "unpaid") {
		t.Errorf("others are told why: %v", err)
	}
}

// letsIn demands that a server lets into a database, or not.
func (w *world) letsIn(what string, c databases.Created, want bool) {
	w.t.Helper()
	equal(w.t, what+": lets in", w.logsIn(c), want)
}

func TestASuspendedAccountIsRefusedAndClosed(t *testing.T) {
	w := newWorld(t)
	shop, still := w.made("shop"), w.made("still")
	must(w.Databases.SetLifecycle(w.ctx, w.reached(still.Record.ID), database.Stop))(t)
	ci := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "web"))(t)
	_, pipeline, err := w.Operator.CreateCIKey(w.ctx, ci.ID)
	ok(t, err)
	before, hook := w.reached(shop.Record.ID), w.reachedHook(w.hook(receiver))

	refused(t, errOf(w.Operator.Suspend(w.ctx, w.account.ID, " ")), fault.ValidationError)
	refused(t, errOf(w.Operator.Suspend(w.ctx, "0189abcd-ef01-4234-8567-89abcdef0123", "x")), fault.ValidationError)
	w.suspends()
	must(w.Operator.Suspend(w.ctx, w.account.ID, "another reason"))(t)
	admission, err := w.Access.Admit(w.ctx, attempt(w.key))
	toldWhy(t, err)
	equal(t, "the rate is shown", admission.Rate.Limit > 0, true)
	toldWhy(t, errOf(w.Access.Admit(w.ctx, attempt(pipeline))))
	// Requests that were admitted before.
	toldWhy(t, errOf(w.Databases.SetLifecycle(w.ctx, before, database.Stop)))
	toldWhy(t, errOf(w.Access.Reach(w.ctx, w.caller, shop.Record.ID, account.See)))
	toldWhy(t, errOf(w.Databases.Create(w.ctx, w.caller, request("more"))))
	toldWhy(t, errOf(w.Webhooks.Create(w.ctx, w.caller, receiver, nil)))
	toldWhy(t, errOf(w.Webhooks.Rotate(w.ctx, hook)))

	w.later(2 * time.Second)
	w.letsIn("suspended", shop, false)
	w.resumes()
	w.letsIn("just resumed", shop, false)
	w.later(2 * time.Second)
	w.letsIn("resumed", shop, true)
	w.letsIn("one that was stopped", still, false)
	equal(t, "its status", w.status(still.Record.ID), database.Stopped)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(still.Record.ID), database.Start))(t)
	w.letsIn("started again", still, true)
	w.made("more")
}

// Whatever happens on the way to the server, it ends as the account stands.
func TestASuspensionReachesTheServerInTheEnd(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, c databases.Created){
		"a server that is away": func(w *world, _ databases.Created) {
			w.server.SetUnreachable(true)
			w.later(2 * time.Second)
			w.server.SetUnreachable(false)
		},
		"a process that dies before it has noted that the server knows": func(w *world, _ databases.Created) {
			if !dies(func() { _ = w.process(mortal(settings.CrashApplied)).Rounds.Once(w.ctx) }) {
				w.t.Fatal("it was not hit")
			}
		},
		"a server that has lost it": func(w *world, c databases.Created) {
			w.later(2 * time.Second)
			w.server.Rewind(c.Record.ID)
			w.later(10 * time.Minute)
		},
		"a quota that closes and opens": func(w *world, _ databases.Created) {
			w.quota(aQuota)
			w.grown("shop", 2*aQuota)
			w.quota(4 * aQuota)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.made("shop")
			w.suspends()
			meanwhile(w, c)
			w.later(2 * time.Second)
			w.letsIn("suspended", c, false)
			w.resumes()
			meanwhile(w, c)
			w.later(2 * time.Second)
			w.letsIn("resumed", c, true)
		})
	}
	t.Run("resumed before the server knows", func(t *testing.T) {
		w := newWorld(t)
		c := w.made("shop")
		w.server.SetUnreachable(true)
		w.suspends()
		w.later(2 * time.Second)
		w.resumes()
		w.server.SetUnreachable(false)
		w.later(2 * time.Second)
		w.letsIn("resumed", c, true)
	})
}

// What was asked for before runs to its end, and leaves a database as the account stands.
func TestWorkThatWasAskedForBeforeASuspension(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) (*world, databases.Created){
		"a creation that was cut off": func(t *testing.T) (*world, databases.Created) {
			w := newWorld(t)
			if !dies(func() {
				_, _ = w.process(mortal(work.Before(databases.KindCreate, "ensure"))).Databases.Create(w.ctx, w.caller, keyed("shop"))
			}) {
				t.Fatal("it was not cut off")
			}
			return w, databases.Created{}
		},
		"a clone": func(t *testing.T) (*world, databases.Created) {
			w := newCloneWorld(t)
			return w, w.cloned("").Clone
		},
		"a restore": func(t *testing.T) (*world, databases.Created) {
			w := newRestoreWorld(t, database.SingleLogin)
			w.restoring()
			return w, w.latest
		},
		"a recovery": func(t *testing.T) (*world, databases.Created) {
			w := newDeletionWorld(t)
			w.deleted(w.source())
			must(w.recovers(w.ControlPlane, w.source()))(t)
			return w, w.latest
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := begin(t)
			w.suspends()
			for range 8 {
				w.later(30 * time.Second)
				must(w.Work.RunNext(w.ctx))(t)
			}
			w.later(2 * time.Second)
			if c.Record.ID != "" {
				w.letsIn("suspended", c, false)
			}
			w.resumes()
			w.work(w.ControlPlane)
			w.later(2 * time.Second)
			if c.Record.ID == "" {
				c = must(w.Databases.Create(w.ctx, w.caller, keyed("shop")))(t)
				equal(t, "settings that the server was told", w.reached(c.Record.ID).Record().SettingsApplied, 2)
			}
			equal(t, "its status", w.status(c.Record.ID), database.Active)
			w.letsIn("resumed", c, true)
		})
	}
	t.Run("suspended while it was deleted, and recovered", func(t *testing.T) {
		w := newDeletionWorld(t)
		o := must(w.deletes(w.ControlPlane, w.source()))(t)
		w.suspends()
		w.later(2 * time.Second)
		w.succeeds(o)
		w.resumes()
		w.recovered(w.source())
		w.later(2 * time.Second)
		w.letsIn("resumed", w.latest, true)
	})
}

// Backups go on, and nothing is deleted because its time is over, until the account is resumed.
func TestWhatGoesOnInASuspendedAccount(t *testing.T) {
	w := newPreviewWorld(t)
	shop := w.made("shop").Record.ID
	ok(t, w.Backups.SetSchedule(w.ctx, w.reached(shop), database.Daily))
	gone := w.made("gone").Record.ID
	ok(t, w.Operator.Enroll(w.ctx, gone, "all"))
	w.deleted(gone)
	w.suspends()
	w.clock.Advance(30 * 24 * time.Hour)
	for range 3 {
		w.rounds(w.ControlPlane)
		w.work(w.ControlPlane)
	}
	standing := func(db id.DatabaseID) database.Status {
		d, err := w.Operator.DatabaseDetails(w.ctx, db)
		if fault.Has(err, fault.ValidationError) {
			return ""
		}
		ok(t, err)
		return d.Record.Status
	}
	equal(t, "the deleted database", standing(gone), database.Deleted)
	equal(t, "the preview", standing(w.one()), database.Active)
	equal(t, "backups", len(must(w.Operator.Backups(w.ctx, ports.BackupFilter{DatabaseID: shop}, ports.Page{}))(t)) > 0, true)

	w.resumes()
	for range 3 {
		w.rounds(w.ControlPlane)
		w.work(w.ControlPlane)
	}
	equal(t, "the deleted database, resumed", standing(gone), "")
	equal(t, "the preview's lease, resumed", w.lease(w.one()), preview.Deleted)
}

// People see why, and log out. Members of a suspended account's databases are refused there, and nowhere else.
func TestPeopleAndASuspension(t *testing.T) {
	c := newCrowd(t)
	db := c.made("shop").Record.ID
	owner, in := c.person(), c.entered()
	guest := c.guest(db, account.Admin)
	sees := func() error { return errOf(c.Access.Reach(c.ctx, guest, db, account.See)) }
	ok(t, sees())

	c.suspends()
	again := c.entered()
	toldWhy(t, errOf(c.visits(in.Token)))
	toldWhy(t, errOf(c.visits(again.Token)))
	toldWhy(t, c.People.EndOthers(c.ctx, owner))
	toldWhy(t, c.Live.StillSees(c.ctx, owner, nil))
	notToldWhy(t, sees())
	notToldWhy(t, c.Live.StillSees(c.ctx, guest, []id.DatabaseID{db}))
	ok(t, c.Live.StillSees(c.ctx, guest, nil))
	ok(t, c.People.LogOut(c.ctx, in.Token))
	c.out("logged out", in.Token)
	c.resumes()
	must(c.visits(again.Token))(t)
	ok(t, sees())

	must(c.Operator.Suspend(c.ctx, guest.Account.ID, "unpaid"))(t)
	toldWhy(t, sees())
	must(c.visits(again.Token))(t)
}

// An invitation and a token of a CI system that were good before open nothing in a suspended account.
func TestNobodyComesIntoASuspendedAccount(t *testing.T) {
	s := newShared(t)
	token := s.invited("bob@example.com", account.Viewer)
	s.suspends()
	notToldWhy(t, errOf(s.Members.Accept(s.ctx, newcomer(token))))
	s.resumes()
	s.joins(token)

	w := newTrusting(t)
	w.suspends()
	toldWhy(t, errOf(w.exchange(w.namespace.ID, w.token())))
	stranger := w.token(func(c *citoken.Claims) { c.Subject = "repo:eve/shop:x" })
	sameRefusal(t, "a token that is not trusted", errOf(w.exchange(w.namespace.ID, stranger)))
	w.resumes()
	w.exchanged()
}

// The doctor sees a database that is open although its account is suspended, and the reverse.
func TestTheDoctorSeesASuspension(t *testing.T) {
	w, db := treated(t)
	for _, change := range []func(){w.suspends, w.resumes} {
		change()
		w.wantFindings(doctor.SettingsDiffer, doctor.LoginDiffers)
		for _, d := range w.examined(checkups.Options{Repair: true}) {
			if d.Failed != nil {
				t.Errorf("%s: %v", d.Code, d.Failed)
			}
		}
		w.wantFindings()
	}
	equal(t, "its status", w.status(db.ID), database.Active)
}
