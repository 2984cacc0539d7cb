package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Target is what a caller reaches. Each kind has a finder of its own, embeds Passage or Reached, and may name another Home.
type Target interface {
	// Home is the database whose enrolments open the gates. It is empty for a target that belongs to none, whose gates only
	// features open.
	Home() id.DatabaseID
	pass(ctx context.Context, tx ports.Tx, home id.DatabaseID) error
}

// Passage is how a target was reached: by whom, and through which gates. Only Find makes one.
type Passage struct {
	caller Caller
	gates  []rollout.Gate
}

// Caller is who reached the target.
func (p Passage) Caller() Caller { return p.caller }

// Home implements Target.
func (Passage) Home() id.DatabaseID { return "" }

// pass asks what the operator has opened, which takes a statement, only where there is a gate.
func (p Passage) pass(ctx context.Context, tx ports.Tx, home id.DatabaseID) error {
	if len(p.gates) == 0 {
		return nil
	}
	granted, err := tx.Switches().Grants(ctx, home)
	for _, g := range p.gates {
		if err == nil {
			err = g.Check(granted)
		}
	}
	return err
}

// Reach finds a database within the caller's scope; ErrNoRow where there is none.
func (p Passage) Reach(ctx context.Context, tx ports.Tx, db id.DatabaseID) (Reached, error) {
	return Reached{Passage: p}.again(ctx, tx, db)
}

// ReachDeleted is Reach for a use case that is also about deleted databases: what it finds may be one.
func (p Passage) ReachDeleted(ctx context.Context, tx ports.Tx, db id.DatabaseID) (Reached, error) {
	return Reached{Passage: p, deleted: true}.again(ctx, tx, db)
}

// Find is how every kind of target is reached: first by its finder, which returns ErrNoRow for what the caller may not see, then
// through its gates. So what is out of reach is missing, whether the gates are open or not. The member's right comes after both.
func Find[T Target](
	ctx context.Context, store ports.Store, c Caller, gates []rollout.Gate, missing error,
	finder func(context.Context, ports.Tx, Passage) (T, error),
) (T, error) {
	var found, none T
	if !c.Known() {
		return none, missing
	}
	err := store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if found, err = finder(ctx, tx, Passage{c, gates}); err != nil {
			return base.NotFound(err, missing)
		}
		return found.pass(ctx, tx, found.Home())
	})
	if err != nil {
		return none, err
	}
	return found, nil
}

// Reached is a database that a caller may see. Only this package creates one, so it proves that the scope was checked, and which
// gates were open. The record is a snapshot from that moment; use cases that write lock the database and read it again.
type Reached struct {
	Passage
	record   database.Record
	standing account.Standing
	deleted  bool // it may be a deleted database
}

// again finds a database as this one was found.
func (r Reached) again(ctx context.Context, tx ports.Tx, db id.DatabaseID) (_ Reached, err error) {
	v := r.caller.Viewer()
	v.Deleted = r.deleted
	r.record, r.standing, err = See(ctx, tx, v, db)
	return r, err
}

// Through returns the database behind other gates: a finder chooses them where they depend on what it has found.
func (r Reached) Through(gates ...rollout.Gate) Reached {
	r.gates = gates
	return r
}

// Record returns the database as it was when Reach found it.
func (r Reached) Record() database.Record { return r.record }

// Home implements Target.
func (r Reached) Home() id.DatabaseID { return r.record.ID }

// Standing returns the caller's standing on the database.
func (r Reached) Standing() account.Standing { return r.standing }

// Permit returns FORBIDDEN if the caller's standing does not allow the action. A use case names the gates that it stands behind:
// for a database that was not reached through all of them the error is internal, as it is the calling program's mistake.
// PREVIEW_CONFLICT: it is a preview, and one of the gates is not for these.
func (r Reached) Permit(a account.Action, gates ...rollout.Gate) error {
	if r.record.ID == "" {
		return base.ErrDatabaseNotFound()
	}
	for _, g := range gates {
		if !slices.Contains(r.gates, g) {
			return fmt.Errorf("access: this needs a database that was reached through the gate %s", g)
		}
	}
	if err := account.Permit(r.standing, a); err != nil {
		return err
	}
	for _, g := range gates {
		if !r.record.IsPreview() {
			break
		}
		if err := g.AdmitsPreview(); err != nil {
			return err
		}
	}
	return nil
}

// PermitRecent is Permit for what cannot be undone, or shows a password. LOGIN_REQUIRED: the caller is a person who proved who
// they are too long ago.
func (r Reached) PermitRecent(clock ports.Clock, a account.Action, gates ...rollout.Gate) error {
	err := r.Permit(a, gates...)
	if c := r.caller; err == nil && c.IsPerson() {
		err = c.Session.RequireRecent(clock.Now())
	}
	return err
}

// Reach finds a database in the caller's scope, for a use case behind these gates. DATABASE_NOT_FOUND: it is missing, of another
// account, out of scope or, for a selected-database key, being deleted. FEATURE_NOT_AVAILABLE or FEATURE_DISABLED: a gate is
// closed. FORBIDDEN: the caller sees it, but may not do the action.
func (a *Access) Reach(
	ctx context.Context, c Caller, db id.DatabaseID, action account.Action, gates ...rollout.Gate,
) (Reached, error) {
	reached, err := Find(ctx, a.base.Store, c, gates, base.ErrDatabaseNotFound(),
		func(ctx context.Context, tx ports.Tx, p Passage) (Reached, error) { return p.Reach(ctx, tx, db) })
	if err != nil {
		return Reached{}, err
	}
	return reached, reached.Permit(action)
}
