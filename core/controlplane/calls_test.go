package controlplane_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// crowdedCalls is a process whose requests do not wait long for a call, and whose calls may hang for a while.
func crowdedCalls(perAccount, perServer int) controlplane.Config {
	c := quick()
	c.CallsPerAccount, c.CallsPerServer, c.CallWait, c.RoleWait = perAccount, perServer, 20*time.Millisecond, 30*time.Second
	return c
}

// hang is how many calls to an agent hang, and what ends them.
type hang struct {
	mu    sync.Mutex
	calls int
	over  chan struct{}
}

// hangs has every rotation of these databases hang, and the agent take so many calls at a time, as a process makes connections.
func (w *world) hangs(connections int, of ...access.Reached) *hang {
	h, pool, hanging := &hang{over: make(chan struct{})}, make(chan struct{}, connections), map[id.DatabaseID]bool{}
	for _, r := range of {
		hanging[r.Record().ID] = true
	}
	w.server.OnCall(func(ctx context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		select {
		case pool <- struct{}{}:
		case <-ctx.Done():
			f.Before = ctx.Err()
			return f
		}
		defer func() { <-pool }()
		if c.Method == "ChangeLogin" && hanging[c.Database] {
			h.mu.Lock()
			h.calls++
			h.mu.Unlock()
			select {
			case <-h.over:
			case <-ctx.Done():
				f.Before = ctx.Err()
			}
		}
		return f
	})
	return h
}

func (h *hang) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func (h *hang) comesTo(t *testing.T, n int) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); h.count() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d calls hang, want %d", h.count(), n)
		}
	}
}

// ofAccount makes databases of a new account.
func (w *world) ofAccount(name string, databases int) (c access.Caller, all []access.Reached) {
	w.t.Helper()
	_, _, c = w.newAccount(name+"@example.org", account.Business)
	for i := range databases {
		made := must(w.Databases.Create(w.ctx, c, request(fmt.Sprint(name, "-", i))))(w.t)
		all = append(all, must(w.Access.Reach(w.ctx, c, made.Record.ID, account.See))(w.t))
	}
	return c, all
}

// One account's rotations all hang. Others' creations and rotations on that server come through, and those of its own that are
// refused have left nothing: with the same key they are carried out when the others have ended.
func TestAnAccountCannotTakeAllCallsToAServer(t *testing.T) {
	const connections, share, databases = 32, 8, 40
	w := configured(t, crowdedCalls(0, 0)) // the defaults
	_, blocked := w.ofAccount("ada", databases)
	bob, calm := w.ofAccount("bob", 1)
	h := w.hangs(connections, blocked...)
	rotate := func(r access.Reached) error {
		return errOf(w.ManagedLogins.Rotate(w.ctx, r, database.RuntimeLogin, "key"))
	}
	var running sync.WaitGroup
	answers := make(chan error, databases)
	for _, r := range blocked {
		running.Go(func() { answers <- rotate(r) })
	}
	for range databases - share {
		expectLater(t, <-answers, fault.RateLimited)
	}
	h.comesTo(t, share)
	equal(t, "calls that hang", h.count(), share)
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	must(w.Databases.Create(ctx, bob, request("next")))(t)
	ok(t, rotate(calm[0]))
	close(h.over)
	running.Wait()
	for range share {
		ok(t, <-answers)
	}
	for _, r := range blocked {
		ok(t, rotate(r))
	}
}

// Every request that makes an agent work is refused while its account's share is taken, and has then changed nothing: made once
// more, it does what it would have done. One after the other needs the only slot, so each has given it back. What the batch host
// does is not refused, and reading a database neither.
func TestARequestBeyondItsAccountsShareChangesNothing(t *testing.T) {
	w := newWorld(t)
	ada, all := w.ofAccount("ada", 2)
	shop, busy := all[0], all[1]
	db := shop.Record().ID
	must(w.Backups.Start(w.ctx, shop))(t)
	w.work(w.ControlPlane)
	file := w.backups(shop)[0].Filename
	shop = must(w.Access.Reach(w.ctx, ada, db, account.See, rollout.AdditionalRoles))(t)
	report := must(w.Roles.Create(w.ctx, shop, wanted("report")))(t)
	done := must(w.Roles.Change(w.ctx, shop, report.ID, role.Rotation, "earlier"))(t)
	dies(func() { _, _ = w.process(mortal("role.prepare.reserved")).Roles.Create(w.ctx, shop, wanted("half")) })
	half := must(w.Roles.List(w.ctx, shop, false))(t)[1]
	queued := must(w.Backups.Start(w.ctx, busy))(t)

	w.ControlPlane = w.process(crowdedCalls(1, 32))
	h := w.hangs(32, busy)
	rotated := make(chan error, 1)
	go func() { rotated <- errOf(w.ManagedLogins.Rotate(w.ctx, busy, database.RuntimeLogin, "key")) }()
	h.comesTo(t, 1)
	again := keyed("again")
	requests := []struct {
		name string
		make func() error
	}{
		{"create", func() error { return errOf(w.Databases.Create(w.ctx, ada, again)) }},
		{"create, repeated", func() error { return errOf(w.Databases.Create(w.ctx, ada, again)) }},
		{"allow", func() error {
			return errOf(w.Allowlist.Add(w.ctx, shop, "192.0.2.1/32", ""))
		}},
		{"delete a backup", func() error { return w.Backups.Delete(w.ctx, shop, file) }},
		{"reveal a login", func() error { return errOf(w.ManagedLogins.Reveal(w.ctx, shop, database.RuntimeLogin)) }},
		{"rotate a login", func() error {
			return errOf(w.ManagedLogins.Rotate(w.ctx, shop, database.RuntimeLogin, "login"))
		}},
		{"prepare a role", func() error { return errOf(w.Roles.Prepare(w.ctx, shop, half.ID)) }},
		{"admit a role", func() error { return errOf(w.Roles.Admit(w.ctx, shop, half.ID)) }},
		{"create a role", func() error { return errOf(w.Roles.Create(w.ctx, shop, wanted("next"))) }},
		{"reveal a role", func() error { return errOf(w.Roles.Reveal(w.ctx, shop, report.ID)) }},
		{"rotate a role", func() error { return errOf(w.Roles.Change(w.ctx, shop, report.ID, role.Rotation, "role")) }},
		{"continue a rotation", func() error { return errOf(w.Roles.ReplayChange(w.ctx, shop, report.ID, done.ID)) }},
		{"delete a role", func() error { return errOf(w.Roles.Delete(w.ctx, shop, report.ID)) }},
		{"remove a role", func() error { return errOf(w.Roles.Remove(w.ctx, shop, report.ID)) }},
		{"restart", func() error { return errOf(w.Databases.SetLifecycle(w.ctx, shop, database.Restart)) }},
		{"back up", func() error { return errOf(w.Backups.Start(w.ctx, shop)) }},
	}
	before := len(w.activity(db))
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) { expectLater(t, r.make(), fault.RateLimited) })
	}
	equal(t, "entries in the log", len(w.activity(db)), before)
	equal(t, "databases", len(w.listed(ada)), len(all))
	must(w.Databases.Get(w.ctx, shop))(t)
	equal(t, "sizes that were asked for", w.server.Calls("DatabaseSize"), 0)
	w.runAll()
	equal(t, "its backup", w.operation(queued.ID).Status, operation.Succeeded)

	close(h.over)
	ok(t, <-rotated)
	for _, r := range requests {
		t.Run(r.name+", once more", func(t *testing.T) { ok(t, r.make()) })
	}
}

func TestARequestWaitsForASlotOfItsServer(t *testing.T) {
	w := configured(t, crowdedCalls(8, 1))
	_, blocked := w.ofAccount("ada", 1)
	bob, calm := w.ofAccount("bob", 1)
	h := w.hangs(32, blocked...)
	rotate := func(r access.Reached) error {
		return errOf(w.ManagedLogins.Rotate(w.ctx, r, database.RuntimeLogin, "key"))
	}
	rotated := make(chan error, 1)
	go func() { rotated <- rotate(blocked[0]) }()
	h.comesTo(t, 1)
	expectLater(t, rotate(calm[0]), fault.ServerBusy)
	must(w.Databases.Create(w.ctx, bob, request("next")))(t) // may go to any server
	close(h.over)
	ok(t, <-rotated)
	ok(t, rotate(calm[0]))
}
