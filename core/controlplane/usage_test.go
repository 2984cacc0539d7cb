package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/usage"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	rules "github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// watched is a world at full hour in which a database with two connections and a query a second has just been made.
func watched(t *testing.T) (*world, id.DatabaseID) {
	t.Helper()
	w := newWorld(t)
	w.clock.Advance(30 * time.Minute)
	made := w.made("shop").Record.ID
	w.server.SetSize("shop", 1<<30)
	w.server.SetLoad("shop", fakeagent.Load{Active: 2, Waiting: 1, Queries: 1})
	w.later(0)
	return w, made
}

// used is what a database has used so far.
func (w *world) used(db id.DatabaseID) usage.Series {
	w.t.Helper()
	in := must(w.Usage.Period("", w.clock.Now().Add(time.Hour).Format(time.RFC3339), rules.Hourly))(w.t)
	return must(w.Usage.Of(w.ctx, w.reached(db), in, rules.Hourly))(w.t)
}

// hours are the minutes of each hour in which a database was seen.
func (w *world) hours(db id.DatabaseID) string {
	w.t.Helper()
	var list []string
	for _, s := range w.used(db).Samples {
		list = append(list, fmt.Sprintf("%s %d", s.Hour.Format("15h"), s.SeenMs/60_000))
		if s.Queries != s.SeenMs/1000 || s.ActiveMs != 2*s.SeenMs {
			w.t.Errorf("%+v", s)
		}
	}
	return fmt.Sprint(list)
}

func TestWhatADatabaseUses(t *testing.T) {
	w, shop := watched(t)
	for range 9 {
		w.later(10 * time.Minute)
	}
	equal(t, "the hours", w.hours(shop), "[10h 60 11h 30]")
	got := w.used(shop)
	s := got.Samples[0]
	equal(t, "connections", fmt.Sprint(s.Connections(), s.ActivePeak, s.Waiting(), s.WaitingPeak, s.ConnectionCap), "2 2 1 1 60")
	equal(t, "bytes", s.Bytes, int64(1<<30))
	equal(t, "quota and cap", fmt.Sprint(got.QuotaBytes, got.ConnectionCap), fmt.Sprint(20<<30, 60))
	equal(t, "hours", fmt.Sprint(got.Sums.DatabaseHours(), got.Sums.ConnectionHours()), "1.5 3")
	equal(t, "byte hours", got.Sums.ByteHours, int64(3<<29))

	file := w.finishedBackup(shop)
	w.later(10 * time.Minute)
	if s := w.used(shop).Samples[1]; s.BackupBytes <= 0 || s.BackupBytes >= file {
		t.Errorf("a backup of %d bytes counts with %d", file, s.BackupBytes)
	}
	_, err := w.Usage.Of(w.ctx, w.reached(shop), rules.Period{From: w.clock.Now(), To: w.clock.Now()}, rules.Daily)
	refused(t, err, fault.ValidationError)
}

// finishedBackup makes a backup, and returns its size.
func (w *world) finishedBackup(db id.DatabaseID) int64 {
	w.t.Helper()
	must(w.Backups.Start(w.ctx, w.reached(db)))(w.t)
	w.work(w.ControlPlane)
	return w.backups(w.reached(db))[0].SizeBytes
}

// Whoever is away, what was seen is stored once and where it belongs, and what nobody saw is missing.
func TestHoursThatNobodySaw(t *testing.T) {
	for name, c := range map[string]struct {
		away func(w *world)
		want string
	}{
		"no batch host for hours": {func(w *world) {
			w.clock.Advance(3*time.Hour + 30*time.Minute)
		}, "[10h 60 11h 60 12h 60 13h 60]"},
		"an agent that is not reached": {func(w *world) {
			w.server.SetUnreachable(true)
			w.later(2 * time.Hour)
			w.server.SetUnreachable(false)
			w.clock.Advance(time.Hour + 30*time.Minute)
		}, "[10h 60 11h 60 12h 60 13h 60]"},
		"an agent that is down": {func(w *world) {
			w.clock.Advance(3*time.Hour + 15*time.Minute)
			w.server.ForgetUsage()
			w.clock.Advance(15 * time.Minute)
		}, "[10h 30 13h 15]"},
		"answers that are lost": {func(w *world) {
			for range 7 {
				w.clock.Advance(30 * time.Minute)
				w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
					if c.Method == "AskUsage" && c.CallIndex%2 == 0 {
						f.After = fakeagent.ErrReplyLost
					}
					return f
				})
				_ = w.Rounds.Once(w.ctx)
			}
		}, "[10h 60 11h 60 12h 60 13h 60]"},
		"a night longer than an agent remembers": {func(w *world) {
			w.clock.Advance(75*time.Hour + 30*time.Minute)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, shop := watched(t)
			w.later(30 * time.Minute)
			c.away(w)
			w.later(0)
			if c.want == "" {
				equal(t, "hours of the last day", w.used(shop).Sums.DatabaseHours(), 24.5)
				return
			}
			equal(t, "the hours", w.hours(shop), c.want)
		})
	}
}

// Of several hosts that ask the same agent at the same time, one stores the answer.
func TestTwoHostsStoreNothingTwice(t *testing.T) {
	w, shop := watched(t)
	w.clock.Advance(30 * time.Minute)
	other := w.process(quick())
	w.server.OnCall(func(ctx context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "AskUsage" && c.CallIndex%2 == 1 { // after the first one has read what is stored
			f.Then = func() { ok(t, other.Rounds.Once(ctx)) }
		}
		return f
	})
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "asked", w.server.Calls("AskUsage"), 3)
	equal(t, "the hours", w.hours(shop), "[10h 30]")
}

// A host whose clock is wrong stores nothing; once a clock that was ahead is set back, no hour gets more than it has.
func TestUsageByClocksThatAreWrong(t *testing.T) {
	w, shop := watched(t)
	w.later(30 * time.Minute)
	clock := &skewed{w.clock, 3 * time.Hour}
	w.ports.Clock = clock
	wrong := w.process(quick())
	var held brake.Held
	if err := wrong.Rounds.Once(w.ctx); !errors.As(err, &held) {
		t.Error(err)
	}
	equal(t, "by a host that is ahead", w.hours(shop), "[10h 30]")

	w.later(40 * time.Minute) // until 11:10
	w.ports.Clock = setBack{w.clock, time.Hour}
	back := w.process(quick())
	for range 6 { // an hour passes for the agent
		w.clock.Advance(10 * time.Minute)
		ok(t, back.Rounds.Once(w.ctx))
	}
	equal(t, "by clocks that were set back", w.hours(shop), "[10h 60 11h 10]")
	w.clock.Advance(10 * time.Minute)
	ok(t, back.Rounds.Once(w.ctx))
	equal(t, "once they have caught up", w.hours(shop), "[10h 60 11h 20]")
}

// setBack is the clock of an installation whose clocks have all been set back, that of the metadata too.
type setBack struct {
	ports.Clock
	by time.Duration
}

// Now implements ports.Clock.
func (c setBack) Now() time.Time { return c.Clock.Now().Add(-c.by) }

// Moved implements ports.Clock.
func (c setBack) Moved() time.Duration { return c.Clock.Moved() - c.by }

func TestTheBillOfADeletedDatabase(t *testing.T) {
	w, shop := watched(t)
	ok(t, w.Operator.SetFeature(w.ctx, "delete", true))
	ok(t, w.Operator.Enroll(w.ctx, shop, rollout.All))
	w.later(time.Hour)
	w.deleted(shop)
	blog := w.made("blog").Record.ID
	w.later(10 * time.Minute)
	bill := func() usage.Bill {
		b, next, err := w.Usage.Account(w.ctx, w.caller, w.clock.Now(), rules.Monthly, ports.Page{})
		if ok(t, err); next != nil {
			t.Error(next)
		}
		return b
	}
	of := func(b usage.Bill, db id.DatabaseID) rules.Line {
		return b.Lines[slices.IndexFunc(b.Lines, func(l usage.Line) bool { return l.DatabaseID == db })].Line
	}
	before := bill()
	if l := of(before, shop); l.Name != "shop" || l.DatabaseHours() < 1 || l.ByteHours < 1<<30 || l.ConnectionHours() < 2 {
		t.Errorf("%+v", l)
	}
	if l := of(before, blog); l.DatabaseHours() <= 0 || before.Total != l.Plus(of(before, shop).Sums) {
		t.Errorf("%+v of %+v", l, before.Total)
	}
	w.purged(w.ControlPlane)
	after := bill()
	equal(t, "the line once it is purged", of(after, shop), of(before, shop))
	if after.Total.DatabaseHours() <= before.Total.DatabaseHours() {
		t.Error("the other database is not billed any more")
	}
	entries := must(w.Operator.Usage(w.ctx, ports.UsageFilter{Month: before.Month}))(t)
	if len(entries) != 2 || entries[1].Name != "shop" || entries[1].Email != "owner@example.org" {
		t.Errorf("%+v", entries)
	}
}

// An account sees its own bill alone, and a key of some of its databases what these came to.
func TestWhoseBillItIs(t *testing.T) {
	w, shop := watched(t)
	w.made("blog")
	w.later(time.Hour)
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	billOf := func(c access.Caller) usage.Bill {
		b, _, err := w.Usage.Account(w.ctx, c, w.clock.Now(), rules.Monthly, ports.Page{})
		ok(t, err)
		return b
	}
	if b := billOf(stranger); len(b.Lines) != 0 || b.Total != (rules.Sums{}) {
		t.Errorf("%+v", b)
	}
	_, key, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "one", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{shop},
	})
	ok(t, err)
	if b := billOf(w.admit(key)); len(b.Lines) != 1 || b.Lines[0].DatabaseID != shop || b.Total != b.Lines[0].Sums {
		t.Errorf("%+v", b)
	}
	equal(t, "databases of the account", len(billOf(w.caller).Lines), 2)
	if s := must(w.Usage.Of(w.ctx, must(w.Access.Reach(w.ctx, w.admit(key), shop, account.See))(t), rules.Period{
		From: w.clock.Now().Add(-time.Hour), To: w.clock.Now(),
	}, rules.Hourly))(t); len(s.Samples) == 0 {
		t.Error("a key of the database does not see what it uses")
	}
	_, _, err = w.Usage.Account(w.ctx, access.Caller{}, w.clock.Now(), rules.Monthly, ports.Page{})
	refused(t, err, fault.KeyScopeDenied)
}

// A month is divided without rest, in small pages.
func TestTheDaysOfABill(t *testing.T) {
	w, _ := watched(t)
	most := 21
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.MaxDatabases = &most }))(t)
	for n := range 20 {
		w.made(fmt.Sprintf("shop%d", n))
	}
	for range 30 {
		w.later(time.Hour)
	}
	for by, want := range map[rules.Resolution]struct{ page, parts int }{
		rules.Monthly: {21, 1}, rules.Daily: {20, 2}, rules.Hourly: {20, 30},
	} {
		b, next, err := w.Usage.Account(w.ctx, w.caller, w.clock.Now(), by, ports.Page{Limit: 100})
		if ok(t, err); len(b.Lines) != want.page || (next != nil) != (want.page < 21) {
			t.Errorf("%s: %d databases, then %v", by, len(b.Lines), next)
		}
		for _, l := range b.Lines {
			var sum rules.Sums
			for _, p := range l.Parts {
				sum = sum.Plus(p.Sums)
			}
			if len(l.Parts) != want.parts || sum != l.Sums {
				t.Errorf("%s: %d parts of %+v, the month has %+v", by, len(l.Parts), sum, l.Sums)
			}
		}
	}
}
