package work_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// digging is a kind of the tests.
const digging operation.Kind = "digging"

// depth is its input.
type depth struct{ Metres int }

// world is a store with servers, accounts and databases, and an engine whose kind does what the test says.
type world struct {
	*work.Engine
	t     *testing.T
	ctx   context.Context
	clock *fakeclock.Clock
	store *memstore.Store
	ids   *fakeentropy.Entropy
	step  func(ctx context.Context, j *work.Job[depth]) (work.Next, error)
	held  error // what holds what goes by time
	loses bool  // the store loses the reply of the next commit
}

// losing is a store that loses replies.
type losing struct {
	ports.Store
	w *world
}

func (l losing) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	err := l.Store.Update(ctx, fn)
	if err == nil && l.w.loses {
		l.w.loses, err = false, errors.New("reset")
	}
	return err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), clock: fakeclock.New(), store: memstore.NewRerunning(), ids: fakeentropy.New()}
	w.Engine = w.process("one")
	return w
}

// process is one more process that shares the queue.
func (w *world) process(name string) *work.Engine {
	e := work.New(work.Config{
		Store: losing{w.store, w}, Clock: w.clock, Entropy: w.ids, Journal: ports.NoJournal{}, Instance: name,
		StepTime: 200 * time.Millisecond,
		Held:     func(context.Context, brake.Work, id.ServerID) (time.Time, error) { return w.clock.Now(), w.held },
	})
	work.Register(e, work.Kind[depth]{
		Spec: operation.Spec{Kind: digging, Public: true, Right: account.Own, Ends: true},
		Step: func(ctx context.Context, j *work.Job[depth]) (work.Next, error) { return w.step(ctx, j) },
		GiveUp: func(ctx context.Context, j *work.Job[depth], by operation.Order) (work.Next, error) {
			return j.Finish(ctx, work.Ending{On: operation.Fail, Cause: by.Cause()})
		},
		Calls:   []string{"dig"},
		Commits: []string{"succeeded", "failed"},
	})
	return e
}

func newID[T ~string](w *world) T { return id.FromBytes[T](w.ids.UUID()) }

func (w *world) update(fn func(ctx context.Context, tx ports.Tx) error) {
	w.t.Helper()
	if err := w.store.Update(w.ctx, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newAccount(name string) id.AccountID {
	w.t.Helper()
	u := account.User{ID: newID[id.UserID](w), Email: name + "@example.org", Name: name}
	a := account.Account{ID: newID[id.AccountID](w), OwnerID: u.ID, Plan: account.Pro}
	w.update(func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Accounts().AddUser(ctx, u), tx.Accounts().Add(ctx, a))
	})
	return a.ID
}

func (w *world) newServer(name string) id.ServerID {
	w.t.Helper()
	s := server.Server{ID: newID[id.ServerID](w), Name: name, AgentURL: "https://" + name, Capacity: 1000, Enabled: true}
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Add(ctx, s) })
	return s.ID
}

// queued is an operation on a new database, changed in several ways.
func (w *world) queued(a id.AccountID, s id.ServerID, name string, changes ...func(*operation.Operation)) operation.Operation {
	w.t.Helper()
	r := database.Record{
		ID: newID[id.DatabaseID](w), AccountID: a, ServerID: s, Name: name, Status: database.Active, PostgresVersion: pgversion.Default,
	}
	o := w.Queued(r, digging, operation.Encode(depth{Metres: 3}), work.Origin{Actor: audit.System, RequestID: "r"})
	for _, change := range changes {
		change(&o)
	}
	w.update(func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Databases().Add(ctx, r), tx.Operations().Add(ctx, o))
	})
	return o
}

func (w *world) stored(o operation.Operation) (now operation.Operation) {
	w.t.Helper()
	err := w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		now, err = tx.Operations().Get(ctx, o.ID)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

// runOne has a process work on one operation, and reports whether there was one.
func (w *world) runOne(e *work.Engine) bool {
	w.t.Helper()
	worked, err := e.RunNext(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return worked
}

func succeed(ctx context.Context, j *work.Job[depth]) (work.Next, error) {
	return j.Finish(ctx, work.Ending{On: operation.Succeed})
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
