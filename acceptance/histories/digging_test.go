package histories

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/ports"
)

// digging is a kind of operations that only these tests have.
const digging operation.Kind = "digging"

// site is a store with accounts, servers and databases, for engines of whom a test says what they do.
type site struct {
	t         *testing.T
	ctx       context.Context
	store     ports.Store
	ids       *fakeentropy.Entropy
	accounts  []id.AccountID
	servers   []id.ServerID
	databases []database.Record // of each account on each server, in this order
}

func newSite(t *testing.T, seed uint64, s setting, accounts, servers int) *site {
	t.Helper()
	w := &site{t: t, ctx: t.Context(), ids: fakeentropy.Seeded(seed)}
	store, _ := s.stored()
	w.store = s.planted(parts{store: store}).store
	for i := range accounts {
		u := account.User{ID: newID[id.UserID](w), Email: fmt.Sprintf("u%d@example.org", i), Name: "Somebody"}
		a := account.Account{ID: newID[id.AccountID](w), OwnerID: u.ID, Plan: account.Pro}
		ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(tx.Accounts().AddUser(ctx, u), tx.Accounts().Add(ctx, a))
		}))
		w.accounts = append(w.accounts, a.ID)
	}
	for i := range servers {
		on := server.Server{
			ID: newID[id.ServerID](w), Name: fmt.Sprint("s", i), AgentURL: fmt.Sprint("https://s", i), SealedSecret: []byte("secret"),
			SealedArchiveKey: []byte("key"), PublicHost: "db.example.org", PublicPort: 6432, Capacity: 1000, Enabled: true,
		}
		ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Add(ctx, on) }))
		w.servers = append(w.servers, on.ID)
	}
	for i := range accounts * servers {
		r := database.Record{
			ID: newID[id.DatabaseID](w), AccountID: w.accounts[i/servers], ServerID: w.servers[i%servers], Name: fmt.Sprint("d", i),
			RoleModel: database.Managed, Schedule: database.NoSchedule, Status: database.Active, Settings: database.NoSettings(),
			Overlay: database.Overlay{OverlayStatus: database.NoOverlay}, PostgresVersion: pgversion.Default,
		}
		ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Add(ctx, r) }))
		w.databases = append(w.databases, r)
	}
	return w
}

func newID[T ~string](w *site) T { return id.FromBytes[T](w.ids.UUID()) }

// engine is that of one process, with its own clock and its own sight of the store.
func (w *site) engine(
	name string, store ports.Store, clock ports.Clock, hold time.Duration,
	step func(context.Context, *work.Job[work.None]) (work.Next, error),
) *work.Engine {
	e := work.New(work.Config{
		Store: store, Clock: clock, Entropy: w.ids, Journal: ports.NoJournal{}, Instance: name, LeaseHold: hold,
	})
	work.Register(e, work.Kind[work.None]{
		Spec: operation.Spec{Kind: digging, Right: account.Own}, Step: step,
		Calls: []string{"dig"}, Commits: []string{"dug", "succeeded"},
	})
	return e
}

// asks has an operation of a database be done.
func (w *site) asks(e *work.Engine, store ports.Store, r database.Record) error {
	o := e.Queued(r, digging, nil, work.Origin{Actor: audit.Operator, RequestID: "request"})
	return store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Operations().Add(ctx, o) })
}

// sight is a store that tells what one process does to operations, once it is committed: notes are begun anew with each update.
type sight struct {
	ports.Store
	seen func(update func(note notes) error) error
}

// notes hear of the writes of an update.
type notes struct {
	added   func(operation.Operation)
	taken   func(ports.OperationClaim, operation.Operation)
	none    func(ports.OperationClaim)
	saved   func(operation.Operation)
	refused func(operation.Operation, error) // to add or save it, whatever becomes of the update
}

// Update implements ports.Store.
func (s sight) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.seen(func(n notes) error {
		return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, sightTx{tx, n}) })
	})
}

type sightTx struct {
	ports.Tx
	notes
}

func (t sightTx) Operations() ports.Operations { return sightOperations{t.Tx.Operations(), t.notes} }

type sightOperations struct {
	ports.Operations
	notes
}

func (o sightOperations) Add(ctx context.Context, added operation.Operation) error {
	err := o.Operations.Add(ctx, added)
	if err == nil {
		o.added(added)
	} else {
		o.refused(added, err)
	}
	return err
}

func (o sightOperations) ClaimNext(ctx context.Context, c ports.OperationClaim) (operation.Operation, error) {
	taken, err := o.Operations.ClaimNext(ctx, c)
	switch {
	case err == nil:
		o.taken(c, taken)
	case errors.Is(err, ports.ErrNoRow):
		o.none(c)
	}
	return taken, err
}

func (o sightOperations) SaveLeased(ctx context.Context, saved operation.Operation) error {
	err := o.Operations.SaveLeased(ctx, saved)
	if err == nil {
		o.saved(saved)
	} else {
		o.refused(saved, err)
	}
	return err
}
