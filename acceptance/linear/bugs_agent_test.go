package linear

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// brokenFleet hands out agents whose changes of logins go another way.
type brokenFleet struct {
	ports.Fleet
	change func(ctx context.Context, a ports.Agent, f ports.Fence, spec command.ChangeLogin) (json.RawMessage, error)
}

func (b brokenFleet) Agent(s server.Server) (ports.Agent, error) {
	a, err := b.Fleet.Agent(s)
	return brokenAgent{a, b}, err
}

type brokenAgent struct {
	ports.Agent
	fleet brokenFleet
}

// Do implements ports.Agent.
func (a brokenAgent) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	if change, is := c.(command.ChangeLogin); is {
		return a.fleet.change(ctx, a.Agent, f, change)
	}
	return a.Agent.Do(ctx, f, c)
}

// staleGenerations is an agent that takes every command for the newest, and hears each once more a little later.
func staleGenerations(_ *rand.Rand, p parts) parts {
	var newest atomic.Int64
	p.fleet = brokenFleet{p.fleet, func(
		ctx context.Context, a ports.Agent, f ports.Fence, spec command.ChangeLogin,
	) (json.RawMessage, error) {
		again := func() (json.RawMessage, error) {
			late := spec
			late.Generation = 1000 + newest.Add(1)
			return a.Do(context.WithoutCancel(ctx), f, late)
		}
		go func() {
			time.Sleep(8 * time.Millisecond)
			_, _ = again()
		}()
		return again()
	}}
	return p
}

// proven is what an agent says that has not looked.
var proven = json.RawMessage(`{"noneLeft":true,"oldRefused":true,"newAccepted":true}`)

// earlyProof is an agent that answers first and rotates then.
func earlyProof(_ *rand.Rand, p parts) parts {
	p.fleet = brokenFleet{p.fleet, func(
		ctx context.Context, a ports.Agent, f ports.Fence, spec command.ChangeLogin,
	) (json.RawMessage, error) {
		if spec.Want != role.Rotation {
			return a.Do(ctx, f, spec)
		}
		go func() {
			time.Sleep(2 * time.Millisecond)
			_, _ = a.Do(context.WithoutCancel(ctx), f, spec)
		}()
		return proven, nil
	}}
	return p
}

// forgottenRevocation skips, at the agent, every revocation with which a deletion begins.
func forgottenRevocation(_ *rand.Rand, p parts) parts {
	var forgotten sync.Map
	p.store = deletionWatch{p.store, &forgotten}
	p.fleet = brokenFleet{p.fleet, func(
		ctx context.Context, a ports.Agent, f ports.Fence, spec command.ChangeLogin,
	) (json.RawMessage, error) {
		if _, skip := forgotten.Load(f.OperationID); skip {
			return proven, nil
		}
		return a.Do(ctx, f, spec)
	}}
	return p
}

// deletionWatch notes the revocations of deletions.
type deletionWatch struct {
	ports.Store
	found *sync.Map
}

func (s deletionWatch) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, watchedTx{tx, s.found}) })
}

type watchedTx struct {
	ports.Tx
	found *sync.Map
}

func (t watchedTx) RoleChanges() ports.RoleChanges {
	return watchedChanges{t.Tx.RoleChanges(), t.found}
}

type watchedChanges struct {
	ports.RoleChanges
	found *sync.Map
}

func (c watchedChanges) Add(ctx context.Context, added role.Change) error {
	if added.Kind == role.Revocation && strings.HasPrefix(string(added.Key), idempotency.InternalPrefix) {
		c.found.Store(added.ID, true)
	}
	return c.RoleChanges.Add(ctx, added)
}

// tornReveal takes a password, and tells the credential generation that it reads afterwards.
func tornReveal(_ *rand.Rand, p parts) parts {
	p.roles = func(u useCases) useCases { return tornUseCases{u} }
	return p
}

type tornUseCases struct{ useCases }

func (u tornUseCases) Reveal(
	ctx context.Context, reached access.Reached, of id.RoleID,
) (roles.Revealed, error) {
	revealed, err := u.useCases.Reveal(ctx, reached, of)
	if err != nil {
		return revealed, err
	}
	time.Sleep(forARotation)
	states, err := u.useCases.List(ctx, reached, true)
	for _, state := range states {
		if state.ID == of && state.Status == role.Ready {
			state.SetGeneration = 0 // read before
			revealed.State = state
		}
	}
	return revealed, err
}
