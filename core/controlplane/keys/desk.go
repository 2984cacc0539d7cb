// Package keys makes and ends what programs log in with: API keys, and the namespaces, keys and trusts of CI systems.
package keys

import (
	"context"
	"maps"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Keys is where people manage the keys of their own account (spec, section "Authentication"). No key makes or ends another one;
// what a program does, Pipelines has.
type Keys struct{ base *base.Base }

// New makes the use cases.
func New(p *base.Base) *Keys { return &Keys{p} }

// Reader is the desk of a person who only looks. KEY_SCOPE_DENIED: the caller is a key.
func (k *Keys) Reader(c access.Caller) (*Desk, error) {
	if !c.IsPerson() {
		return nil, fault.New(fault.KeyScopeDenied, "keys are managed by people, and never by a key")
	}
	return &Desk{base: k.base, caller: &c}, nil
}

// Desk is the desk of a person, for the keys of the own account. KEY_SCOPE_DENIED: the caller is a key. LOGIN_REQUIRED: the last
// proof is too long ago.
func (k *Keys) Desk(c access.Caller) (*Desk, error) {
	d, err := k.Reader(c)
	if err == nil {
		err = c.Session.RequireRecent(k.base.Clock.Now())
	}
	return d, err
}

// Desk manages the keys of all accounts for the operator, and those of one account for a person: what belongs to others does not
// exist there. For a person, every error may also be UNAUTHORIZED: the session has ended. Pipelines has one that is a key's.
type Desk struct {
	base   *base.Base
	caller *access.Caller // nil: the operator
}

// OperatorsDesk is the desk of the people who run the service. It does not authenticate.
func OperatorsDesk(p *base.Base) *Desk { return &Desk{base: p} }

// admits returns VALIDATION_ERROR on "flag", as if it did not exist, for what belongs to an account that is not the person's.
func (d *Desk) admits(of id.AccountID, flag string) error {
	if d.caller != nil && of != d.caller.Account.ID {
		return missing(ports.ErrNoRow, flag)
	}
	return nil
}

// admitsNew is admits for a new key, namespace or trust, and returns its account. PLAN_API_ACCESS_REQUIRED: a person's plan has
// no API.
func (d *Desk) admitsNew(ctx context.Context, tx ports.Tx, a id.AccountID) (account.Account, error) {
	of, err := tx.Accounts().Get(ctx, a)
	if err != nil {
		return of, missing(err, "account")
	}
	if err := d.admits(a, "account"); err != nil {
		return of, err
	}
	if d.caller != nil && !of.Plan.AllowsAPI() {
		err = fault.New(fault.PlanAPIAccessRequired, "the plan %s has no API access: keys need Pro or Business", of.Plan)
	}
	return of, err
}

// update runs fn in a transaction, as long as a person's session is open, or a key works.
func (d *Desk) update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		switch {
		case d.caller == nil:
		case d.caller.IsPerson():
			err = d.caller.StillIn(ctx, tx, d.base.Clock)
		default:
			err = d.caller.StillWorks(ctx, tx, d.base.Clock)
		}
		if err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

// record adds what was done to the log of an account, in the transaction that does it.
func (d *Desk) record(ctx context.Context, tx ports.Tx, a id.AccountID, what audit.Action, details audit.Details) error {
	by := audit.Operator
	if d.caller != nil {
		by = d.caller.Actor()
	}
	return d.base.Audit(ctx, tx, database.Record{AccountID: a}, by, what, details)
}

// recordChanges is record where there are changes. about names what was changed.
func (d *Desk) recordChanges(
	ctx context.Context, tx ports.Tx, a id.AccountID, what audit.Action, about, changes audit.Details,
) error {
	if len(changes) == 0 {
		return nil
	}
	maps.Copy(changes, about)
	return d.record(ctx, tx, a, what, changes)
}

// missing is base.NotFound for a thing that is named by its ID.
func missing(err error, flag string) error {
	return base.NotFound(err, fault.Invalid(flag, "does not exist"))
}
