package provision

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// StandCalls are the calls of Stand.
var StandCalls = []string{"ensure", "overlay", "prepare"}

// Stand has a server make a database that is filled later, empty and closed, with its logins and with the roles, which cannot log
// in yet: what they own and are granted comes with the data. refused says why it does not, for good.
func Stand(
	ctx context.Context, p *base.Base, l *work.Lease, a ports.Agent, r database.Record, roles []Role,
) (refused *fault.Error, err error) {
	spec, err := Spec(ctx, p, r)
	if err != nil {
		return nil, err
	}
	spec.Closed = true
	_, err = work.Send(ctx, l, "ensure", a, spec)
	switch {
	case command.RefusedFor(err, command.ReasonNameTaken):
		return fault.Wrap(err, fault.AgentError, "the server has another database or login of one of its names"), nil
	case base.RefusedForGood(err):
		return fault.Wrap(err, fault.AgentError, "the server could not make the database"), nil
	case err != nil:
		return nil, err
	}
	if err := prepare(ctx, l, a, r, roles); base.RefusedForGood(err) {
		return fault.Wrap(err, fault.AgentError, "the server could not make the additional roles"), nil
	} else if err != nil {
		return nil, err
	}
	return nil, nil //nolint:nilnil // it stands
}

func prepare(ctx context.Context, l *work.Lease, a ports.Agent, r database.Record, roles []Role) error {
	if r.OverlayStatus == database.OverlayActive {
		if _, err := work.Send(ctx, l, "overlay", a, command.EnsureOverlay{DatabaseID: r.ID}); err != nil {
			return err
		}
	}
	for _, one := range roles {
		if _, err := work.Send(ctx, l, "prepare", a, one.Prepare); err != nil {
			return err
		}
	}
	return nil
}
