package driver

import (
	"context"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// outages implements spec.Outages.
type outages struct{ r *realService }

// Metadata implements spec.Outages.
func (o outages) Metadata(gone bool) error { return postgresGone(o.r.Metadata, gone) }

// Server implements spec.Outages.
func (o outages) Server(gone bool) error { return postgresGone(o.r.Server, gone) }

func postgresGone(pg *cluster.Postgres, gone bool) error {
	ctx, cancel := soon()
	defer cancel()
	if gone {
		return pg.Stop(ctx, cluster.Immediate)
	}
	select {
	case <-pg.Done():
		return pg.Start(context.Background())
	default:
		return nil
	}
}

// Pooler implements spec.Outages.
func (o outages) Pooler(gone bool) error {
	if gone {
		return o.r.Stack.Pooler.Kill()
	}
	select {
	case <-o.r.Stack.Pooler.Done():
		return o.r.Stack.Pooler.Start(context.Background())
	default:
		return nil
	}
}
