package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func TestCreate(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	equal(t, "status", c.Record.Status, database.Active)
	equal(t, "username", c.Username, "shop")
	equal(t, "connection cap", c.Record.ConnectionCap, 60)
	equal(t, "logs in", w.logsIn(c), true)
	equal(t, "logins", len(w.server.Logins()), 3)
	u := must(url.Parse(c.ConnectionString))(t)
	password, _ := u.User.Password()
	if u.Host != "db.example.org:6432" || u.Path != "/shop" || password != c.Password || u.Query().Get("sslmode") != "verify-full" {
		t.Error(u.Redacted())
	}
	if got := w.activity(c.Record.ID); !slices.Equal(got, []audit.Action{audit.DatabaseCreated}) {
		t.Error(got)
	}
	if len(w.store.Events()) != 0 {
		t.Error("the service's own operation made an event")
	}
	list, _, err := w.Operations.List(w.ctx, w.reached(c.Record.ID), ports.Page{})
	if err != nil || len(list) != 0 {
		t.Errorf("the service's own operation is listed: %v, %v", list, err)
	}
}

func TestCreateWithOneLogin(t *testing.T) {
	w := newWorld(t)
	r := request("shop")
	r.RoleModel, r.Schedule, r.Environment = database.SingleLogin, database.Daily, database.Staging
	c := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	equal(t, "logins", strings.Join(w.server.Logins(), " "), "shop")
	equal(t, "connection cap", c.Record.ConnectionCap, 0)
	equal(t, "environment", c.Record.Environment, database.Staging)
	next := c.Record.NextBackupAt
	if next == nil || !next.After(w.clock.Now()) || next.After(w.clock.Now().Add(24*time.Hour)) {
		t.Errorf("the first scheduled backup is due %v", next)
	}
}

// The same key and request give the same database and password; another request with the key gives a conflict.
func TestCreateReplay(t *testing.T) {
	w := newWorld(t)
	r := request("shop")
	r.Key = "once"
	first := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	r.DisplayName = "  A shop " // means the same
	again := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	if again.Record.ID != first.Record.ID || again.Password != first.Password || again.ConnectionString != first.ConnectionString {
		t.Errorf("%s, then %s", first.Record.ID, again.Record.ID)
	}
	for name, change := range map[string]func(*databases.CreateRequest){
		"name":         func(r *databases.CreateRequest) { r.Name = "other" },
		"display name": func(r *databases.CreateRequest) { r.DisplayName = "Other" },
		"role model":   func(r *databases.CreateRequest) { r.RoleModel = database.SingleLogin },
		"environment":  func(r *databases.CreateRequest) { r.Environment = database.Other },
		"schedule":     func(r *databases.CreateRequest) { r.Schedule = database.Daily },
	} {
		t.Run(name, func(t *testing.T) {
			other := r
			change(&other)
			_, err := w.Databases.Create(w.ctx, w.caller, other)
			refused(t, err, fault.DatabaseStateConflict)
		})
	}
	equal(t, "databases", w.databases(), 1)
}

func TestAKeyIsOfItsAccount(t *testing.T) {
	w := newWorld(t)
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	r := request("shop")
	r.Key = "once"
	must(w.Databases.Create(w.ctx, w.caller, r))(t)
	r.Name = "another"
	other := must(w.Databases.Create(w.ctx, stranger, r))(t)
	equal(t, "the stranger's database", other.Record.Name, "another")
}

// many runs fn n times at once and counts what came of it by code; the empty code is success.
func many(n int, fn func(i int) error) map[fault.Code]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	counts := map[fault.Code]int{}
	for i := range n {
		all.Go(func() {
			err := fn(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				counts[""]++
			} else {
				counts[fault.CodeOf(err)]++
			}
		})
	}
	all.Wait()
	return counts
}

func TestQuotaIsExactUnderLoad(t *testing.T) {
	w := newWorld(t)
	counts := many(50, func(i int) error {
		_, err := w.Databases.Create(w.ctx, w.caller, request(fmt.Sprintf("shop-%d", i)))
		return err
	})
	if counts[""] != 10 || counts[fault.PlanLimit] != 40 {
		t.Errorf("%v", counts)
	}
	equal(t, "databases of the account", w.databases(), 10)
	equal(t, "databases on the server", len(w.server.Databases()), 10)
}

func TestOneKeyManyTimesMakesOne(t *testing.T) {
	w := newWorld(t)
	r := request("shop")
	r.Key = "once"
	var passwords sync.Map
	counts := many(50, func(int) error {
		c, err := w.Databases.Create(w.ctx, w.caller, r)
		passwords.Store(c.Password, true)
		return err
	})
	n := 0
	passwords.Range(func(any, any) bool { n++; return true })
	if counts[""] != 50 || n != 1 {
		t.Errorf("%v, %d different passwords", counts, n)
	}
	equal(t, "databases", len(w.server.Databases()), 1)
}

func TestTakenNames(t *testing.T) {
	w := newWorld(t)
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	w.made("shop")
	_, err := w.Databases.Create(w.ctx, w.caller, request("shop"))
	refused(t, err, fault.ValidationError)
	_, err = w.Databases.Create(w.ctx, stranger, request("shop"))
	refused(t, err, fault.ValidationError)
	_, err = w.Databases.Create(w.ctx, w.caller, request("postgres"))
	refused(t, err, fault.ValidationError)

	w.server.AddForeign("legacy")
	_, err = w.Databases.Create(w.ctx, w.caller, request("legacy"))
	refused(t, err, fault.ValidationError)
	equal(t, "databases", w.databases(), 1)
}

func TestWhoMayCreate(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	_, key, err := w.Operator.CreateKey(w.ctx, operator.NewKey{
		AccountID: w.account.ID, Label: "one", Scope: account.SelectedDatabases, Databases: ids(c),
	})
	ok(t, err)
	_, err = w.Databases.Create(w.ctx, w.admit(key), request("other"))
	refused(t, err, fault.KeyScopeDenied)
	_, err = w.Databases.Create(w.ctx, access.Caller{}, request("other"))
	refused(t, err, fault.KeyScopeDenied)
}

func TestUnreachableServerLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.server.SetUnreachable(true)
	r := request("shop")
	r.Key = "once"
	_, err := w.Databases.Create(w.ctx, w.caller, r)
	refused(t, err, fault.AgentError)
	equal(t, "databases", w.databases(), 0)
	w.server.SetUnreachable(false)
	equal(t, "claimable work", must(w.Work.RunNext(w.ctx))(t), false)
	c := must(w.Databases.Create(w.ctx, w.caller, r))(t) // the key and the name are free again
	equal(t, "logs in", w.logsIn(c), true)
}

func TestRefusalIsClearedAway(t *testing.T) {
	w := newWorld(t)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "EnsureDatabase" {
			f.Before = &command.Refusal{Reason: command.ReasonFailed, Message: "no"}
		}
		return f
	})
	_, err := w.Databases.Create(w.ctx, w.caller, request("shop"))
	refused(t, err, fault.AgentError)
	equal(t, "databases", w.databases(), 0)
	equal(t, "closed at the agent", w.server.Calls("Close"), 1)
	w.server.OnCall(nil)
	w.made("shop")
}

// The agent refuses for good and then goes away: the database is in error until the agent has confirmed that nothing is left.
func TestClearingGoesOnInTheBackground(t *testing.T) {
	w := newWorld(t)
	var gone atomic.Bool
	gone.Store(true)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		switch {
		case c.Method == "EnsureDatabase":
			f.Before = &command.Refusal{Reason: command.ReasonFailed, Message: "no"}
		case gone.Load():
			f.Before = ports.ErrAgentUnreachable
		}
		return f
	})
	_, err := w.Databases.Create(w.ctx, w.caller, request("shop"))
	refused(t, err, fault.AgentError)
	list, _, err := w.Databases.List(w.ctx, w.caller, ports.Page{})
	ok(t, err)
	if len(list) != 1 || list[0].Status != database.Error {
		t.Fatalf("%+v", list)
	}
	gone.Store(false)
	w.work(w.ControlPlane)
	equal(t, "databases", w.databases(), 0)
	equal(t, "ensured", w.server.Calls("EnsureDatabase"), 1)
}

// The reply is lost: nobody knows whether the database stands. The background proves it, and a replay has the password.
func TestLostReplyIsFinishedInTheBackground(t *testing.T) {
	w := newWorld(t)
	w.server.LoseReplies(1)
	r := request("shop")
	r.Key = "once"
	_, err := w.Databases.Create(w.ctx, w.caller, r)
	refused(t, err, fault.AgentError)
	equal(t, "databases", w.databases(), 1)
	w.work(w.ControlPlane)
	c := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	equal(t, "status", c.Record.Status, database.Active)
	equal(t, "the promised password works", w.logsIn(c), true)
	equal(t, "databases on the server", len(w.server.Databases()), 1)
}

// Only the first worker can know that a command was never delivered: after a lost reply an unreachable server proves nothing.
func TestUnreachableLaterForgetsNothing(t *testing.T) {
	w := newWorld(t)
	r := request("shop")
	r.Key = "once"
	w.server.LoseReplies(1)
	_, err := w.Databases.Create(w.ctx, w.caller, r)
	refused(t, err, fault.AgentError)
	w.server.SetUnreachable(true)
	w.clock.Advance(time.Minute)
	w.runOnce()
	equal(t, "databases", w.databases(), 1)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	equal(t, "logs in", w.logsIn(must(w.Databases.Create(w.ctx, w.caller, r))(t)), true)
}

// A replay that comes while the first request is at work waits for it.
func TestReplayWaitsForTheFirst(t *testing.T) {
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "EnsureDatabase" {
			close(entered)
			<-leave
		}
		return fakeagent.Fault{}
	})
	r := request("shop")
	r.Key = "once"
	var first, second databases.Created
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { first, errs[0] = w.Databases.Create(w.ctx, w.caller, r) })
	<-entered
	both.Go(func() { second, errs[1] = w.Databases.Create(w.ctx, w.caller, r) })
	close(leave)
	both.Wait()
	ok(t, errors.Join(errs[:]...))
	equal(t, "password", second.Password, first.Password)
	equal(t, "ensured", w.server.Calls("EnsureDatabase"), 1)
}

// A caller who leaves does not stop the work.
func TestCallerLeaves(t *testing.T) {
	w := newWorld(t)
	ctx, leave := context.WithCancel(w.ctx)
	w.server.OnCall(func(context.Context, fakeagent.Call) fakeagent.Fault { leave(); return fakeagent.Fault{} })
	_, _ = w.Databases.Create(ctx, w.caller, request("shop")) // nobody hears the answer
	list, _, err := w.Databases.List(w.ctx, w.caller, ports.Page{})
	ok(t, err)
	if len(list) != 1 || list[0].Status != database.Active {
		t.Errorf("%+v", list)
	}
}

func TestServerIsDownForLong(t *testing.T) {
	w := newWorld(t)
	w.server.SetUnavailable(true)
	r := request("shop")
	r.Key = "once"
	_, err := w.Databases.Create(w.ctx, w.caller, r)
	refused(t, err, fault.AgentError)
	for range 5 {
		w.clock.Advance(time.Minute)
		must(w.Work.RunNext(w.ctx))(t)
	}
	equal(t, "databases", w.databases(), 1)
	w.server.SetUnavailable(false)
	w.work(w.ControlPlane)
	equal(t, "logs in", w.logsIn(must(w.Databases.Create(w.ctx, w.caller, r))(t)), true)
}

// Killed at any point, the next process finishes: one database, the quota exact, and the replay has a password that works.
func TestCreateSurvivesEveryCrash(t *testing.T) {
	r := request("shop")
	r.Key = "once"
	killed(t, databases.KindCreate, func(*world) {},
		func(w *world, cp *controlplane.ControlPlane) { _, _ = cp.Databases.Create(w.ctx, w.caller, r) },
		func(w *world) {
			c := must(w.Databases.Create(w.ctx, w.caller, r))(w.t)
			equal(w.t, "logs in", w.logsIn(c), true)
			equal(w.t, "databases", w.databases(), 1)
			equal(w.t, "logins", len(w.server.Logins()), 3)
		})
}

func TestClearingSurvivesEveryCrash(t *testing.T) {
	killed(t, databases.KindCreate, func(w *world) { w.server.AddForeign("shop") },
		func(w *world, cp *controlplane.ControlPlane) {
			_, _ = cp.Databases.Create(w.ctx, w.caller, request("shop"))
		},
		func(w *world) {
			equal(w.t, "databases", w.databases(), 0)
			equal(w.t, "databases on the server", len(w.server.Databases()), 0)
		})
}
