package operator

import (
	"context"
	"maps"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// record adds what the operator did to the log of an account, or of the installation where there is no account, in the
// transaction that does it. The operator's name comes from base.ByOperator.
func (o *Operator) record(
	ctx context.Context, tx ports.Tx, a id.AccountID, what audit.Action, details audit.Details,
) error {
	return o.base.Audit(ctx, tx, database.Record{AccountID: a}, audit.Operator, what, details)
}

// recordChanges is record where there are changes; a command that changes nothing leaves no entry. about names what was changed.
func (o *Operator) recordChanges(
	ctx context.Context, tx ports.Tx, a id.AccountID, what audit.Action, about, changes audit.Details,
) error {
	if len(changes) == 0 {
		return nil
	}
	maps.Copy(changes, about)
	return o.record(ctx, tx, a, what, changes)
}
