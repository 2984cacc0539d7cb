package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// lockThatDoesNotHold is a store whose transactions read a database, its roles and its changes, and write when others have
// written meanwhile.
func lockThatDoesNotHold(dice *rand.Rand, p parts) parts {
	p.store = &earlyReads{Store: p.store, dice: dice, all: true}
	return p
}

// keysOutsideTheLock is the same, but for look-ups of keys only.
func keysOutsideTheLock(dice *rand.Rand, p parts) parts {
	p.store = &earlyReads{Store: p.store, dice: dice}
	return p
}

// earlyReads is a store that reads before it has the lock.
type earlyReads struct {
	ports.Store
	all bool

	mu   sync.Mutex
	dice *rand.Rand
}

var errRehearsal = errors.New("only the reads were wanted")

// Update runs fn twice: the first run is undone, and the second is given what the first has read.
func (s *earlyReads) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	known := map[string]any{}
	err := s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := fn(ctx, earlyTx{tx, known, s.all}); err != nil {
			return err
		}
		return errRehearsal
	})
	if !errors.Is(err, errRehearsal) {
		return err
	}
	time.Sleep(s.pause())
	return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, earlyTx{tx, known, s.all}) })
}

func (s *earlyReads) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.dice.Int64N(int64(2 * time.Millisecond)))
}

type earlyTx struct {
	ports.Tx
	known map[string]any
	all   bool
}

func (t earlyTx) Databases() ports.Databases {
	if !t.all {
		return t.Tx.Databases()
	}
	return earlyDatabases{t.Tx.Databases(), t.known}
}

func (t earlyTx) Roles() ports.Roles { return earlyRoles{t.Tx.Roles(), t.known, t.all} }

func (t earlyTx) RoleChanges() ports.RoleChanges {
	return earlyChanges{t.Tx.RoleChanges(), t.known, t.all}
}

// onceIf is once where that is wanted, and reads each time where it is not.
func onceIf[T any](wanted bool, known map[string]any, what string, args any, read func() (T, error)) (T, error) {
	if !wanted {
		return read()
	}
	return once(known, what, args, read)
}

// once reads the first time only.
func once[T any](known map[string]any, what string, args any, read func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	key := fmt.Sprint(what, args)
	if a, again := known[key]; again {
		return a.(answer).v, a.(answer).err
	}
	v, err := read()
	known[key] = answer{v, err}
	return v, err
}

type earlyDatabases struct {
	ports.Databases
	known map[string]any
}

func (d earlyDatabases) Lock(ctx context.Context, db id.DatabaseID) (database.Record, error) {
	return once(d.known, "database", db, func() (database.Record, error) { return d.Databases.Lock(ctx, db) })
}

type earlyRoles struct {
	ports.Roles
	known map[string]any
	all   bool
}

func (r earlyRoles) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Role, error) {
	return once(r.known, "role of", key, func() (role.Role, error) { return r.Roles.ByKey(ctx, db, key) })
}

func (r earlyRoles) Get(ctx context.Context, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	return onceIf(r.all, r.known, "role", of, func() (role.Role, error) { return r.Roles.Get(ctx, db, of) })
}

func (r earlyRoles) List(ctx context.Context, db id.DatabaseID) ([]role.Role, error) {
	return onceIf(r.all, r.known, "roles", db, func() ([]role.Role, error) { return r.Roles.List(ctx, db) })
}

type earlyChanges struct {
	ports.RoleChanges
	known map[string]any
	all   bool
}

func (c earlyChanges) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Change, error) {
	return once(c.known, "change of", key, func() (role.Change, error) { return c.RoleChanges.ByKey(ctx, db, key) })
}

func (c earlyChanges) Get(ctx context.Context, db id.DatabaseID, change id.OperationID) (role.Change, error) {
	return onceIf(c.all, c.known, "change", change, func() (role.Change, error) { return c.RoleChanges.Get(ctx, db, change) })
}

func (c earlyChanges) Pending(ctx context.Context, db id.DatabaseID) (role.Change, error) {
	return onceIf(c.all, c.known, "pending change", db, func() (role.Change, error) { return c.RoleChanges.Pending(ctx, db) })
}
