package controlplane_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

func (w *world) asksForClone(change func(*clone.Request)) error {
	w.t.Helper()
	q := clone.Request{Name: "copy", DisplayName: "A copy"}
	if change != nil {
		change(&q)
	}
	return errOf(w.Clones.Start(w.ctx, w.forClone(), q))
}

// A refusal stores nothing: neither a record nor the use of a key.
func TestClonesThatAreRefused(t *testing.T) {
	const none backup.Filename = "20260101_000000.sql.gz"
	named := func(name string) func(*clone.Request) { return func(q *clone.Request) { q.Name = name } }
	from := func(f backup.Filename) func(*clone.Request) { return func(q *clone.Request) { q.Filename = &f } }
	var copied backup.Filename
	for name, c := range map[string]struct {
		prepare func(w *world)
		ask     func(*clone.Request)
		code    fault.Code
	}{
		"no name":           {nil, named(""), fault.ValidationError},
		"the source's name": {nil, named("shop"), fault.ValidationError},
		"no such backup":    {nil, from(none), fault.BackupNotFound},
		"no file name":      {nil, from("latest"), fault.InvalidBackupFilename},
		"a profile": {func(w *world) { must(w.setsTimeouts(w.source(), querytimeout.Short, "one"))(w.t) }, nil,
			fault.QueryTimeoutCloneRequiresReconfigure},
		"another operation": {func(w *world) { must(w.Backups.Start(w.ctx, w.reached(w.source())))(w.t) }, nil,
			fault.DatabaseStateConflict},
		"another clone": {func(w *world) { w.cloned("") }, named("other"), fault.DatabaseStateConflict},
		"no database is left": {func(w *world) {
			one := 1
			must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.MaxDatabases = &one }))(w.t)
		}, nil, fault.PlanLimit},
		"the server with the backup is full": {func(w *world) {
			copied = w.copied()
			w.resize(func(s *server.Server) { s.Capacity = 1 })
		}, func(q *clone.Request) { q.Filename = &copied }, fault.AgentError},
		"no server is for new ones": {func(w *world) {
			w.resize(func(s *server.Server) { s.Enabled = false })
			for _, s := range must(w.Operator.Servers(w.ctx))(w.t) {
				s.Enabled = false
				ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Save(ctx, s) }))
			}
		}, nil, fault.AgentError},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloneWorld(t)
			must(w.Operator.AddServer(w.ctx, operator.NewServer{ // which has no file of the source
				Name: "two", AgentURL: "https://two:8090", Secret: agentSecret, PublicHost: "two.example.org", PublicPort: 6432,
				Capacity: 1000,
			}))(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			before := w.databases()
			keyed := func(q *clone.Request) {
				q.Key = "twice"
				if c.ask != nil {
					c.ask(q)
				}
			}
			for range 2 {
				refused(t, w.asksForClone(keyed), c.code)
			}
			equal(t, "databases", w.databases(), before)
		})
	}
}

// resize changes the server of the source.
func (w *world) resize(change func(*server.Server)) {
	w.t.Helper()
	change(&w.machine)
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Save(ctx, w.machine) }))
}

// A clone stays on its source's server, also where another one has more room, unless that has none. Then it is on another one.
func TestWhereAClonedDatabaseStands(t *testing.T) {
	w := newCloneWorld(t)
	must(w.Operator.AddServer(w.ctx, operator.NewServer{
		Name: "two", AgentURL: "https://two:8090", Secret: agentSecret, PublicHost: "two.example.org", PublicPort: 6432, Capacity: 5000,
	}))(t)
	equal(t, "server", w.cloned("").Clone.Record.ServerID, w.machine.ID)
	w.work(w.ControlPlane)
	w.resize(func(s *server.Server) { s.Capacity = 2 })
	two, _ := w.another("three", 0)
	s := must(w.Clones.Start(w.ctx, w.forClone(), clone.Request{Name: "elsewhere", DisplayName: "Elsewhere"}))(t)
	equal(t, "server of the next", s.Clone.Record.ServerID, two.ID)
	equal(t, "host", s.Clone.Record.Host, "three.example.org")
}

// onAnother is a flow of a clone for which only another server has room, which is w.server from then on.
func onAnother(f flow) flow {
	f.prepare = func(w *world) {
		w.clonable()
		w.resize(func(s *server.Server) { s.Capacity = 1 })
		_, w.server = w.another("two", 0)
	}
	f.ended = func(w *world, end operation.Status) {
		o := w.lastOfSource()
		equal(w.t, "status", o.Status, end)
		if got := w.events(); !slices.Equal(got, []string{"backup.succeeded", "clone." + string(end)}) {
			w.t.Errorf("events %v", got)
		}
		home, there := w.home(), w.fleet.Server(w.other().ID)
		equal(w.t, "log-ins of the source", home.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
		equal(w.t, "databases of the source's server", len(home.Databases()), 1)
		equal(w.t, "files", [2]int{home.Files(), there.Files()}, [2]int{1, 0})
		equal(w.t, "copies", home.Copies()+there.Copies(), 0)
		if end != operation.Succeeded {
			equal(w.t, "databases of the clone's server", len(there.Databases()), 0)
			must(w.Databases.Create(w.ctx, w.caller, request("copy")))(w.t) // its name is free
			return
		}
		equal(w.t, "tables", there.HasTable("copy", "before") && there.HasTable("copy", "after"), true)
		list := w.listed(w.caller)
		equal(w.t, "status", list[1].Status, database.Active)
		equal(w.t, "server", list[1].ServerID, w.other().ID)
	}
	return f
}

// What the source has of its own stays with it; what the account gives to new databases the clone has too.
func TestWhatACloneBeginsWith(t *testing.T) {
	w := newCloneWorld(t)
	ok(t, w.Databases.SetEnvironment(w.ctx, w.reached(w.source()), new(database.Production)))
	must(w.setsTimeouts(w.source(), querytimeout.Standard, "one"))(t)
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Switches().SetAutoEnroll(ctx, w.account.ID, true)
	}))
	s := w.cloned("")
	w.work(w.ControlPlane)
	r := w.reached(s.Clone.Record.ID).Record()
	equal(t, "environment", r.Environment, "")
	equal(t, "schedule", r.Schedule, database.NoSchedule)
	equal(t, "profile", r.TimeoutProfile, querytimeout.NotConfigured)
	equal(t, "cap", r.ConnectionCap, w.account.Quotas().ConnectionCap)
	equal(t, "password", s.Clone.Password != "" && s.Clone.Password != w.latest.Password, true)
	must(w.Access.Reach(w.ctx, w.caller, r.ID, account.See, rollout.Clone))(t)
}

// The same request finds the same clone and its operation as they are then, with the password as long as that is the clone's.
func TestTheKeyOfAClone(t *testing.T) {
	w := newCloneWorld(t)
	first := w.cloned("")
	again := w.cloned("")
	equal(t, "operation", again.Operation.ID, first.Operation.ID)
	equal(t, "clone", again.Clone, first.Clone)
	ask := func(change func(*clone.Request)) error {
		return w.asksForClone(func(q *clone.Request) { q.Key = "once"; change(q) })
	}
	refused(t, ask(func(q *clone.Request) { q.Name = "other" }), fault.DatabaseStateConflict)
	refused(t, ask(func(q *clone.Request) { q.Filename = new(w.copied()) }), fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	again = w.cloned("")
	equal(t, "status", again.Operation.Status, operation.Succeeded)
	equal(t, "password", again.Clone.Password, first.Clone.Password)
	equal(t, "times that the log says so", w.logged(first.Clone.Record.ID, audit.PasswordShownAgain), 2)
	must(w.ManagedLogins.Rotate(w.ctx, w.reached(first.Clone.Record.ID), database.OwnerLogin, "rotate-1"))(t)
	again = w.cloned("")
	equal(t, "password once it is another one", again.Clone.Password+again.Clone.ConnectionString, "")
	equal(t, "databases", w.databases(), 2)
}

// Only a full-account key of the owner clones, through the gate, and as long as it has not been revoked.
func TestWhoClones(t *testing.T) {
	w := newCloneWorld(t)
	_, text, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "one", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{w.source()},
	})
	ok(t, err)
	q := clone.Request{Name: "copy", DisplayName: "A copy"}
	selected := must(w.Access.Reach(w.ctx, w.admit(text), w.source(), account.See, rollout.Clone))(t)
	refused(t, errOf(w.Clones.Start(w.ctx, selected, q)), fault.KeyScopeDenied)
	refusedInside(t, errOf(w.Clones.Start(w.ctx, w.reached(w.source()), q)))
	reached := w.forClone()
	ok(t, w.Operator.RevokeKey(w.ctx, w.caller.Key.ID))
	refused(t, errOf(w.Clones.Start(w.ctx, reached, q)), fault.DatabaseNotFound)
	equal(t, "calls", w.server.Calls("EnsureDatabase"), 1)
}

// While a clone is made, its source serves, and logins change there; nobody stops it, and the backup stays.
func TestTheSourceOfAClone(t *testing.T) {
	w := newRoleWorld(t)
	w.latest = must(w.Databases.Create(w.ctx, w.caller, request("other")))(t)
	w.latest.Record = w.reached(w.db).Record()
	ok(t, w.Operator.SetFeature(w.ctx, "clone", true))
	ok(t, w.Operator.Enroll(w.ctx, w.db, "clone"))
	reports := w.role("report").ID
	must(w.Backups.Start(w.ctx, w.here()))(t)
	w.work(w.ControlPlane)
	file := w.copied()
	w.cloned(file)
	w.untilClone(clone.Loading)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop)), fault.DatabaseStateConflict)
	refused(t, errOf(w.Backups.Start(w.ctx, w.here())), fault.DatabaseStateConflict)
	refused(t, w.Backups.Delete(w.ctx, w.here(), file), fault.BackupConflict)
	equal(t, "rotated", must(w.change(reports, role.Rotation, "one"))(t).Status, role.Completed)
	w.work(w.ControlPlane)
	equal(t, "status", w.lastOfSource().Status, operation.Succeeded)
	ok(t, w.Backups.Delete(w.ctx, w.here(), file))
}

// A stopped database is cloned as well; the clone is open.
func TestACloneOfAStoppedDatabase(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, file backup.Filename) {
		must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Stop))(t)
		s := w.cloned(file)
		w.work(w.ControlPlane)
		equal(t, "status", w.lastOfSource().Status, operation.Succeeded)
		equal(t, "log-ins", w.logsIn(s.Clone), true)
		equal(t, "log-ins of the source", w.logsIn(w.latest), false)
	})
}

// A clone of a backup without the roles has no additional roles, and never will.
func TestACloneOfABackupThatPredatesAdditionalRoles(t *testing.T) {
	w := newCloneWorld(t)
	file := w.copied()
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		b, err := tx.Backups().Get(ctx, w.source(), file)
		if err != nil {
			return err
		}
		b.RoleManifest = false
		if err := tx.Backups().Remove(ctx, w.source(), file); err != nil {
			return err
		}
		return tx.Backups().Add(ctx, b)
	}))
	s := w.cloned(file)
	w.work(w.ControlPlane)
	create := func(db id.DatabaseID) error {
		return errOf(w.Roles.Create(w.ctx, must(w.Access.Reach(w.ctx, w.caller, db, account.See, rollout.AdditionalRoles))(t),
			role.Request{DisplayName: "Reports", AccessProfile: role.Custom, ConnectionLimit: 1, Key: idempotency.Key("k")}))
	}
	refused(t, create(s.Clone.Record.ID), fault.CustomRoleRequiresV3Clone)
	ok(t, create(w.source()))
}
