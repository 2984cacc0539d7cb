package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/ports"
)

// Operate opens a metadata database and then the secret box, for the operator's use cases without a host.
func Operate(
	ctx context.Context, url string, open func() (ports.SecretBox, error), clock *system.Clock,
	do func(context.Context, *operator.Operator) error,
) (err error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConnections: 2, Brief: true})
	if err != nil {
		return fmt.Errorf("the metadata database cannot be used: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	box, err := open()
	if err != nil {
		return err
	}
	cp, err := controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Fleet: agentclient.New(box, agentclient.Options{}), Clock: clock,
		Entropy: system.Entropy{}, Secrets: box,
	}, controlplane.Config{})
	if err != nil {
		return err
	}
	return do(ctx, cp.Operator)
}
