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
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/ports"
)

// Console is what the operator's use cases need without a host.
type Console struct {
	MetadataURL string
	Box         func() (ports.SecretBox, error)
	Clock       *system.Clock
	Mailer      ports.Mailer // see Mail.Outbox
}

// Operate opens the metadata database and then the secret box.
func (c Console) Operate(ctx context.Context, do func(context.Context, *operator.Operator) error) (err error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: c.MetadataURL, MaxConnections: 2, Brief: true})
	if err != nil {
		return NotUsed(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	box, err := c.Box()
	if err != nil {
		return err
	}
	ring, _ := box.(ports.KeyRing) // nil for a command without secrets
	cp, err := controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Clock: c.Clock,
		Fleet:   agentclient.New(box, agentclient.Options{UserAgent: version.Product("pgherd")}),
		Entropy: system.Entropy{}, Secrets: box, Ring: ring, Mailer: c.Mailer,
		Snapshots: newSnapshots(c.MetadataURL, box),
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
