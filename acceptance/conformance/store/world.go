package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shared "github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Metadata makes an empty store, and returns what opens it: each call is another process that shares it.
type Metadata func(t *testing.T) (host func(t *testing.T) Host)

// Host is one process's view of a store.
type Host struct {
	Store      ports.Store
	Admissions ports.Admissions
	Notifier   ports.Notifier
	// Dispatchers wakes for events and deliveries of webhooks, and for mails.
	Dispatchers ports.Notifier
	// Events reads the whole outbox, oldest first, which no port does.
	Events func(t *testing.T) []ports.OutboxEvent
	// LoseMembers and LoseKeys drop what the access snapshot of a deleted database says of these, which no port does either.
	LoseMembers, LoseKeys func(t *testing.T, of id.DatabaseID)
}

// epoch is when the worlds of these suites begin. PostgreSQL keeps microseconds.
var epoch = time.Date(2026, time.January, 5, 9, 30, 0, 123456000, time.UTC)

// world is a store with one user, one account and one server in it.
type world struct {
	*testing.T
	Host
	another func(t *testing.T) Host
	other   ports.Store // of another host, once it is needed
	user    account.User
	account account.Account
	server  server.Server
}

// check is one thing that a suite demands.
type check struct {
	name string
	run  func(w *world)
}

// checkAll gives each check a world of its own.
func checkAll(t *testing.T, m Metadata, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, m)) })
	}
}

func newWorld(t *testing.T, m Metadata) *world {
	host := m(t)
	w := &world{T: t, Host: host(t), another: host}
	w.user, w.account = w.addAccount("ada@example.com")
	w.server = w.addServer("first", 100)
	return w
}

func (w *world) addAccount(email string) (account.User, account.Account) {
	w.Helper()
	return w.addAccountOf(email, "Ada")
}

func (w *world) addAccountOf(email, name string) (account.User, account.Account) {
	w.Helper()
	u := account.User{ID: newID[id.UserID](), Email: email, Name: name, CreatedAt: epoch}
	a := account.Account{ID: newID[id.AccountID](), OwnerID: u.ID, Plan: account.Business, CreatedAt: epoch}
	w.update(inOrder(writing(ports.Tx.Accounts, ports.Accounts.AddUser, u), writing(ports.Tx.Accounts, ports.Accounts.Add, a)))
	return u, a
}

// suspend suspends an account; saved as it was given, it is resumed.
func (w *world) suspend(a account.Account) {
	w.Helper()
	a.Suspension = unpaid()
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, a))
}

func (w *world) addServer(name string, capacity int) server.Server {
	w.Helper()
	s := server.Server{
		ID: newID[id.ServerID](), Name: name, AgentURL: "https://" + name + ".internal:8090",
		SealedSecret: []byte{0, 1, 2, 255}, SealedArchiveKey: []byte("a-" + name), CA: "PEM",
		PublicHost: name + ".example.com", PublicPort: 6432,
		Capacity: capacity, Enabled: true, CreatedAt: epoch, PostgresVersion: pgversion.Default,
	}
	w.update(writing(ports.Tx.Servers, ports.Servers.Add, s))
	return s
}

// record is a database of the world's account that is not stored yet.
func (w *world) record(name string) database.Record {
	return database.Record{
		ID: newID[id.DatabaseID](), AccountID: w.account.ID, ServerID: w.server.ID, Name: name, DisplayName: "Shop, " + name,
		RoleModel: database.Managed, Environment: database.Staging, Schedule: database.NoSchedule, Status: database.Active,
		CreatedAt: epoch, PostgresVersion: pgversion.Default, ConnectionCap: 60, Settings: database.NoSettings(),
		Overlay: database.Overlay{OverlayStatus: database.NoOverlay}, Host: w.server.PublicHost, Port: w.server.PublicPort,
		Plan: w.account.Plan,
	}
}

// addDatabase stores a database after change.
func (w *world) addDatabase(name string, change ...func(*database.Record)) database.Record {
	w.Helper()
	r := changed(w.record(name), change)
	w.update(writing(ports.Tx.Databases, ports.Databases.Add, r))
	return r
}

// work is a queued backup of a database that is not stored yet.
func (w *world) work(db id.DatabaseID) operation.Operation {
	return operation.Operation{
		ID: newID[id.OperationID](), AccountID: w.account.ID, DatabaseID: db, ServerID: w.server.ID, Kind: "backup",
		Status: operation.Queued, Stage: operation.StageQueued, Input: []byte(`{"filename": "20260105_093000.sql.gz",  "verify":true}`),
		Actor: audit.ByKey("pgh_ABCDEFGH", w.user.ID), RequestID: "request-1", CreatedAt: epoch,
		Lease: operation.Lease{NotBefore: epoch},
	}
}

// addWork stores an operation after change.
func (w *world) addWork(db id.DatabaseID, change ...func(*operation.Operation)) operation.Operation {
	w.Helper()
	o := changed(w.work(db), change)
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, o))
	return o
}

// keyOf is a key that is not stored yet.
func keyOf(owner account.Account, scope account.Scope, change ...func(*account.Key)) account.Key {
	_, c := account.NewKey(account.AccountKey, randomBase62())
	return changed(account.Key{
		ID: c.ID, Kind: account.AccountKey, AccountID: owner.ID, UserID: owner.OwnerID, Label: "ci", Scope: scope,
		Hash: c.Hash[:], CreatedAt: epoch,
	}, change)
}

func (w *world) addKey(scope account.Scope, owner account.Account, databases ...id.DatabaseID) account.Key {
	w.Helper()
	k := keyOf(owner, scope)
	w.update(writing2(ports.Tx.Keys, ports.Keys.Add, k, databases))
	return k
}

// update runs a transaction that must succeed.
func (w *world) update(fn func(ctx context.Context, tx ports.Tx) error) {
	w.Helper()
	if err := w.Store.Update(w.Context(), fn); err != nil {
		w.Fatalf("update: %v", err)
	}
}

// view runs a view that must succeed.
func (w *world) view(fn func(ctx context.Context, tx ports.Tx) error) {
	w.Helper()
	if err := w.Store.View(w.Context(), fn); err != nil {
		w.Fatalf("view: %v", err)
	}
}

// refused runs a transaction that must fail with an error like want.
func (w *world) refused(what string, want error, fn func(ctx context.Context, tx ports.Tx) error) {
	w.Helper()
	if err := w.Store.Update(w.Context(), fn); !sameError(err, want) {
		w.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// unknown runs a transaction that must fail as it is about something that does not exist.
func (w *world) unknown(what string, fn transaction) {
	w.Helper()
	w.refused(what, ports.ErrNoRow, fn)
}

// fails runs a transaction that must fail, however.
func (w *world) fails(what string, fn transaction) {
	w.Helper()
	if err := w.Store.Update(w.Context(), fn); err == nil {
		w.Errorf("not refused: %s", what)
	}
}

// missing runs a view that must find nothing.
func (w *world) missing(what string, fn func(ctx context.Context, tx ports.Tx) error) {
	w.Helper()
	if err := w.Store.View(w.Context(), fn); !sameError(err, ports.ErrNoRow) {
		w.Errorf("%s: got %v, want %v", what, err, ports.ErrNoRow)
	}
}

// equal compares what was read with what was stored, times as exact instants in UTC.
func (w *world) equal(what string, got, want any) {
	w.Helper()
	exact := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location() == b.Location() })
	if diff := cmp.Diff(want, got, exact); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// invalid is the VALIDATION_ERROR about a field.
func invalid(field string) error { return fault.Invalid(field, "") }

var noError = shared.NoError

func must[T any](v T, err error) func(testing.TB) T { return shared.Must(v, err) }

// minutes is the n-th minute of the world.
func minutes(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

func numbered(n int) string { return fmt.Sprintf("db-%03d", n) }
