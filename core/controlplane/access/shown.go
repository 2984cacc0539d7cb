package access

import (
	"errors"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Shown is an operation of the database as the caller is shown it: with a result that is sealed where they may start such an
// operation, and else without. One that the key ring does not open any more has none, which fails no list of operations.
// ErrNoRing.
func (r Reached) Shown(p *base.Base, o operation.Operation) (operation.Operation, error) {
	may := r.caller.RequireFullAccount() == nil && r.Permit(p.Work.Spec(o.Kind).Right) == nil
	if o.SealedResult == nil || !may {
		return o, nil
	}
	text, err := p.Secrets.Open(o.SealedResult, o.ResultContext())
	if errors.Is(err, ports.ErrNoRing) {
		return o, err
	}
	o.Result = text
	return o, nil
}
