package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
		return NotUsed(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	box, err := open()
	if err != nil {
		return err
	}
	ring, _ := box.(ports.KeyRing) // nil for a command without secrets
	cp, err := controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Fleet: agentclient.New(box, agentclient.Options{}), Clock: clock,
		Entropy: system.Entropy{}, Secrets: box, Ring: ring,
	}, controlplane.Config{Crash: CrashHook()})
	if err != nil {
		return err
	}
	if err := cp.Keyring.Refresh(ctx); err != nil {
		return fmt.Errorf("--keyring-file: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { cp.Keyring.Run(ctx) }) // some commands take long
	defer following.Wait()
	defer stop()
	return do(ctx, cp.Operator)
}
