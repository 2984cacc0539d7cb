package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Suspend has an account not be served until Resume: whoever acts for it is refused with ACCOUNT_SUSPENDED and the reason, which
// is thus the customer's to read, and so is, without the reason, who is a member of one of its databases. Its databases take no
// clients once their servers have been told, which a batch host does within seconds, and again where one was away.
//
// Nothing is deleted because a time is over: previews and deleted databases stay. Daily backups go on, and so does their
// retention; what the customer has asked for before runs to its end, but for recoveries, which do not begin. An account that is
// suspended stays as it is, and nothing is logged. VALIDATION_ERROR on "reason" or "account".
func (o *Operator) Suspend(ctx context.Context, of id.AccountID, reason string) (account.Account, error) {
	return o.setSuspension(ctx, of, reason, audit.AccountSuspended, func(s account.Suspension) account.Suspension {
		return s.Suspend(reason, o.base.Clock.Now())
	})
}

// Resume has an account be served again: keys, sessions and passwords are what they were, and a database that its customer had
// stopped is stopped. What waited because of the suspension goes on. Of an account that is served, nothing changes and nothing is
// logged. Errors as of Suspend.
func (o *Operator) Resume(ctx context.Context, of id.AccountID, reason string) (account.Account, error) {
	return o.setSuspension(ctx, of, reason, audit.AccountResumed, func(account.Suspension) account.Suspension {
		return account.Suspension{}
	})
}

// setSuspension also gives the account's databases other settings, which have their servers close or open them. Whoever writes to
// one of these has locked it, so that nobody who acts for the account does so after the suspension.
func (o *Operator) setSuspension(
	ctx context.Context, of id.AccountID, reason string, what audit.Action, next func(account.Suspension) account.Suspension,
) (a account.Account, err error) {
	if err := operation.CheckReason(reason); err != nil {
		return a, err
	}
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if _, err := o.LockOwned(ctx, tx, of); err != nil {
			return err
		}
		if a, err = tx.Accounts().LockForQuota(ctx, of); err != nil {
			return notFound(err, "account")
		}
		was := a.Suspended()
		a.Suspension = next(a.Suspension)
		if a.Suspended() == was {
			return nil
		}
		if err := tx.Accounts().Save(ctx, a); err != nil {
			return err
		}
		owned, err := o.LockOwned(ctx, tx, of) // and one that was made since the first time
		if err != nil {
			return err
		}
		for _, db := range owned {
			locked, err := tx.Databases().Lock(ctx, db)
			if err == nil {
				err = settings.Save(ctx, tx, locked)
			}
			if err != nil {
				return err
			}
		}
		return o.record(ctx, tx, of, what, audit.Details{"reason": reason})
	})
	return a, err
}
