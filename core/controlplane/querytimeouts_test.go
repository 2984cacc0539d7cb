package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// setsTimeouts sets a profile, as the owner of the database.
func (w *world) setsTimeouts(
	db id.DatabaseID, p querytimeout.Profile, key idempotency.Key,
) (querytimeouts.State, error) {
	return w.QueryTimeouts.Set(w.ctx, w.reached(db), p, key)
}

// timeoutsAre checks record and server: the same profile is wanted, in effect and in force.
func (w *world) timeoutsAre(db id.DatabaseID, want querytimeout.Profile) {
	w.t.Helper()
	s := must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(w.t)
	equal(w.t, "wanted profile", s.TimeoutProfile, want)
	equal(w.t, "effective profile", s.TimeoutEffective, want)
	equal(w.t, "applied generation", s.SettingsApplied, s.SettingsGeneration)
	if s.InForce == nil {
		w.t.Fatal("the server does not report")
	}
	limits := querytimeout.Policy[want]
	equal(w.t, "statement timeout", s.InForce.StatementMs, limits.Statement.Milliseconds())
	equal(w.t, "lock timeout", s.InForce.LockMs, limits.Lock.Milliseconds())
	equal(w.t, "idle timeout", s.InForce.IdleInTransactionMs, limits.IdleInTransaction.Milliseconds())
}

func TestQueryTimeoutsAreSet(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	w.timeoutsAre(db, querytimeout.NotConfigured)
	first := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	equal(t, "status", first.Change.Status, operation.Succeeded)
	equal(t, "reported", first.InForce.StatementMs, int64(15_000))
	w.timeoutsAre(db, querytimeout.Short)
	second := must(w.setsTimeouts(db, querytimeout.Standard, "two"))(t)
	w.timeoutsAre(db, querytimeout.Standard)

	again := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	equal(t, "the operation of the first key", again.Change.ID, first.Change.ID)
	equal(t, "the last one", must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(t).Change.ID, second.Change.ID)
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Balanced, "one")), fault.QueryTimeoutConflict)
	w.timeoutsAre(db, querytimeout.Standard)
	equal(t, "changes in the log", count(w.activity(db), audit.TimeoutsChanged), 2)

	other := w.made("other").Record.ID // a key belongs to its database
	must(w.setsTimeouts(other, querytimeout.Balanced, "one"))(t)
	w.timeoutsAre(other, querytimeout.Balanced)
}

// A stopped database takes a profile too: it holds once the database is started.
func TestQueryTimeoutsOfAStoppedDatabase(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t)
	must(w.setsTimeouts(c.Record.ID, querytimeout.Balanced, "one"))(t)
	equal(t, "a log-in gets in", w.logsIn(c), false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Start))(t)
	w.timeoutsAre(c.Record.ID, querytimeout.Balanced)
}

// A change whose server does not confirm is open, and keeps other work away until it is done.
func TestAnOpenChangeOfQueryTimeouts(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	w.refusing("Configure", command.ReasonUnavailable)
	begun := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	equal(t, "status", begun.Change.Status, operation.Running)
	equal(t, "wanted", begun.TimeoutProfile, querytimeout.Short)
	equal(t, "in effect", begun.TimeoutEffective, querytimeout.NotConfigured)
	equal(t, "in force", begun.InForce.StatementMs, int64(0))

	refused(t, errOf(w.setsTimeouts(db, querytimeout.Short, "two")), fault.QueryTimeoutConflict)
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Standard, "one")), fault.QueryTimeoutConflict)
	equal(t, "repeated", must(w.setsTimeouts(db, querytimeout.Short, "one"))(t).Change.ID, begun.Change.ID)
	for _, action := range []database.Event{database.Stop, database.Restart} {
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(db), action)), fault.DatabaseStateConflict)
	}
	refused(t, errOf(w.Backups.Start(w.ctx, w.reached(db))), fault.DatabaseStateConflict)
	w.tryForAnHour()
	equal(t, "status after an hour", w.operation(begun.Change.ID).Status, operation.Running)

	whileOpen := w.reached(db)
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	seen := must(w.QueryTimeouts.Get(w.ctx, whileOpen))(t) // which was reached before the change ended, and is read after it
	equal(t, "status", seen.Change.Status, operation.Succeeded)
	equal(t, "in effect then", seen.TimeoutEffective, querytimeout.Short)
	w.timeoutsAre(db, querytimeout.Short)
	equal(t, "status", must(w.setsTimeouts(db, querytimeout.Short, "one"))(t).Change.Status, operation.Succeeded)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Stop))(t)
}

// A round has the server enforce what an operation that waits for its next attempt has stored; the operation finds that done.
func TestARoundSetsQueryTimeouts(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	w.losing("Configure", 0)
	begun := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	equal(t, "status", begun.Change.Status, operation.Running)
	ok(t, w.Rounds.Once(w.ctx))
	w.timeoutsAre(db, querytimeout.Short)
	calls := w.server.Calls("Configure")
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(begun.Change.ID).Status, operation.Succeeded)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pushes of what is enforced", w.server.Calls("Configure"), calls)
}

func TestWhatKeepsQueryTimeoutsFromChanging(t *testing.T) {
	cases := map[string]func(w *roleWorld){
		"a backup":           func(w *roleWorld) { must(w.Backups.Start(w.ctx, w.reached(w.db)))(w.t) },
		"a change of a role": func(w *roleWorld) { w.pending(w.role("report").ID) },
		"a status": func(w *roleWorld) {
			ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
				r := must(tx.Databases().Lock(ctx, w.db))(w.t)
				r.Status = database.Error
				return tx.Databases().Save(ctx, r)
			}))
		},
	}
	for name, begin := range cases {
		t.Run(name, func(t *testing.T) {
			w := newRoleWorld(t)
			begin(w)
			refused(t, errOf(w.setsTimeouts(w.db, querytimeout.Short, "one")), fault.DatabaseStateConflict)
			equal(t, "wanted", w.reached(w.db).Record().Settings, database.NoSettings())
		})
	}
}

// pending leaves a change of a role unfinished.
func (w *roleWorld) pending(r id.RoleID) {
	w.t.Helper()
	w.refusing("ChangeLogin", command.ReasonUnavailable)
	equal(w.t, "status", must(w.change(r, role.Revocation, "key"))(w.t).Status, role.Pending)
}

func TestOnlyTheOwnerHasQueryTimeouts(t *testing.T) {
	for _, standing := range []account.Standing{account.Admin, account.Developer, account.Viewer} {
		t.Run(string(standing), func(t *testing.T) {
			w := newRoleWorld(t)
			r := w.asMember(standing)
			refused(t, errOf(w.QueryTimeouts.Get(w.ctx, r)), fault.Forbidden)
			refused(t, errOf(w.QueryTimeouts.Set(w.ctx, r, querytimeout.Short, "one")), fault.Forbidden)
		})
	}
}

// Without its server nothing is stored, and the same request works later. A repetition, and a look, need no server.
func TestQueryTimeoutsWithoutTheServer(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	w.server.SetUnreachable(true)
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Short, "one")), fault.AgentError)
	equal(t, "stored", w.reached(db).Record().Settings, database.NoSettings())
	w.server.SetUnreachable(false)
	done := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	w.server.SetUnreachable(true)
	again := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	equal(t, "repeated", again.Change.ID, done.Change.ID)
	seen := must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(t)
	equal(t, "seen", seen.TimeoutEffective, querytimeout.Short)
	if again.InForce != nil || seen.InForce != nil {
		t.Error("a server that is gone has reported")
	}
}

func TestQueryTimeoutsOfAServerThatHangs(t *testing.T) {
	c := quick()
	c.SettingsWait, c.RoleWait = 20*time.Millisecond, 20*time.Millisecond
	w := configured(t, c)
	db := w.made("shop").Record.ID
	w.server.SetDelay(time.Minute)
	begun := time.Now()
	if s := must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(t); s.InForce != nil {
		t.Errorf("it reports %+v", s.InForce)
	}
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Short, "one")), fault.AgentError)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// That an agent is to be updated is found before anything is stored. Where it is replaced meanwhile, the change waits.
func TestQueryTimeoutsOfAnAgentThatIsToBeUpdated(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	w.refusing("Settings", command.ReasonNoRoute)
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Short, "one")), fault.AgentRouteUnavailable)
	equal(t, "stored", w.reached(db).Record().Settings, database.NoSettings())
	w.refusing("Configure", command.ReasonOtherProtocol)
	begun := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	w.tryForAnHour()
	equal(t, "status", w.operation(begun.Change.ID).Status, operation.Running)
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	w.timeoutsAre(db, querytimeout.Short)
}

// A change that the server refuses for good fails: the profile that was in effect is wanted again, and is in force even where
// the failed one had reached the server.
func TestAQueryTimeoutThatIsRefused(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	must(w.setsTimeouts(db, querytimeout.Standard, "one"))(t)
	w.losing("Configure", 0)
	begun := must(w.setsTimeouts(db, querytimeout.Short, "two"))(t)
	w.refusing("Configure", command.ReasonFailed)
	w.clock.Advance(time.Minute)
	must(w.Work.RunNext(w.ctx))(t)
	equal(t, "status", w.operation(begun.Change.ID).Status, operation.Failed)
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Short, "two")), fault.AgentError)
	seen := must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(t)
	equal(t, "wanted", seen.TimeoutProfile, querytimeout.Standard)
	equal(t, "status that is shown", seen.Change.Status, operation.Failed)
	equal(t, "in force, of the failed one", seen.InForce.StatementMs, int64(15_000))
	equal(t, "failures in the log", count(w.activity(db), audit.TimeoutsFailed), 1)

	w.server.OnCall(nil)
	calls := w.server.Calls("Configure")
	ok(t, w.Rounds.Once(w.ctx))
	w.timeoutsAre(db, querytimeout.Standard)
	equal(t, "pushes of the generation that takes it back", w.server.Calls("Configure"), calls+1)
	refused(t, errOf(w.setsTimeouts(db, querytimeout.Short, "two")), fault.AgentError)
	must(w.setsTimeouts(db, querytimeout.Short, "three"))(t)
	w.timeoutsAre(db, querytimeout.Short)
}

// The server refuses an attempt for good, and a round that comes between that and its record succeeds: then the change has.
func TestAQueryTimeoutThatARoundSetsAfterAll(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	c := quick()
	c.Crash = func(at string) {
		if at == "query_timeout.before-failed" {
			w.server.OnCall(nil)
			ok(t, w.Rounds.Once(w.ctx))
		}
	}
	w.refusing("Configure", command.ReasonFailed)
	begun := must(w.process(c).QueryTimeouts.Set(w.ctx, w.reached(db), querytimeout.Short, "one"))(t)
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(begun.Change.ID).Status, operation.Succeeded)
	w.timeoutsAre(db, querytimeout.Short)
}

func TestAKilledPushOfSettings(t *testing.T) {
	for _, point := range settings.CrashPoints {
		w := newWorld(t)
		db := w.made("shop").Record.ID
		if !dies(func() {
			_, _ = w.process(mortal(point)).QueryTimeouts.Set(w.ctx, w.reached(db), querytimeout.Short, "one")
		}) {
			t.Fatalf("%s was not hit", point)
		}
		ok(t, w.Rounds.Once(w.ctx))
		w.timeoutsAre(db, querytimeout.Short)
	}
}

// A database whose settings its server never takes, as its customer may bring about, keeps those of the account's others away for
// one round, whichever comes first; and its allowlist those of their allowlists.
func TestADatabaseThatTakesNoPushDelaysNoOther(t *testing.T) {
	for method, push := range map[string]func(w *world, db id.DatabaseID){
		"Configure":    func(w *world, db id.DatabaseID) { must(w.setsTimeouts(db, querytimeout.Short, "one"))(w.t) },
		"SetAllowlist": func(w *world, db id.DatabaseID) { _, _ = w.Allowlist.Add(w.ctx, w.reached(db), office, "") },
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			brief := quick()
			brief.RoleWait = 200 * time.Millisecond
			w := configured(t, brief)
			shop, blog := w.made("shop").Record, w.made("blog").Record
			w.refusing(method, command.ReasonUnavailable)
			push(w, shop.ID)
			push(w, blog.ID)
			behind := func(db id.DatabaseID) bool {
				r := w.reached(db).Record()
				return r.SettingsApplied < r.SettingsGeneration || r.AllowlistApplied < r.AllowlistGeneration
			}
			bad, other := shop.ID, blog.ID
			if other < bad {
				bad, other = other, bad
			}
			w.server.OnCall(func(ctx context.Context, c fakeagent.Call) (f fakeagent.Fault) {
				if c.Method == method && c.Database == bad {
					<-ctx.Done()
					f.Before = ctx.Err()
				}
				return f
			})
			ok(t, w.Rounds.Once(w.ctx))
			ok(t, w.Rounds.Once(w.ctx))
			equal(t, "behind: the one that hangs, the other", [2]bool{behind(bad), behind(other)}, [2]bool{true, false})
		})
	}
}
