// Package keyrings keeps the hosts of an installation on one ring of keys. The metadata know the ring by the fingerprints of its
// keys, and say which of them encrypts; each host says which it has. So a host with another ring does not start and writes
// nothing, and no key is changed or dropped before every host is ready for it.
package keyrings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

// Keyring is one process's ring, and what the installation knows of rings. A control plane without Ports.Ring has no such
// knowledge: what it does with a ring does nothing, and what changes one is refused.
type Keyring struct {
	base *base.Base

	comparing sync.Mutex // held while the primary is read and set in the ring, so that the later one stays

	mu        sync.Mutex
	host      keyring.Host // its ID is empty unless the process has joined
	trouble   error        // why the ring cannot be used, as last seen
	confirmed time.Time    // when it could be used, as last seen
}

// New makes the use cases, and registers their periodic task.
func New(p *base.Base) *Keyring {
	k := &Keyring{base: p}
	rounds.Register(p.Rounds, rounds.Task{
		Name: "keyring", Every: time.Minute, Limit: resealLimit, Work: brake.Harmless, Do: k.resume,
	})
	return k
}

// Join registers the process under a name: it must be able to encrypt, and counts until it leaves or has not reported for
// long. Where no ring was registered yet, its ring is, if it opens what is stored.
func (k *Keyring) Join(ctx context.Context, name string) error {
	return k.JoinFrom(ctx, keyring.Boot{}, name)
}

// JoinFrom is Join of a process that was started in a boot of its machine: another machine may have a process of the same name.
func (k *Keyring) JoinFrom(ctx context.Context, boot keyring.Boot, name string) error {
	if k.base.Ring == nil {
		return nil
	}
	k.comparing.Lock()
	defer k.comparing.Unlock()
	host := boot.Host(base.NewID[id.RingHostID](k.base.Entropy), name)
	err := k.compare(ctx, &host, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.KeyRings().ForgetBefore(ctx, k.base.Clock.Now().Add(-keyring.ForgottenAfter)); err != nil {
			return err
		}
		others, err := tx.KeyRings().Hosts(ctx)
		if err != nil {
			return err
		}
		for _, h := range others {
			if boot.Was(h, name) {
				if err := tx.KeyRings().Forget(ctx, h.ID); err != nil {
					return err
				}
			}
		}
		return nil
	})
	k.remember(host, err)
	return err
}

// Refresh reads which key encrypts, and reports the process's keys if it has joined. It is to be called every
// keyring.ReportEvery, and when the ring has changed.
func (k *Keyring) Refresh(ctx context.Context) error {
	if k.base.Ring == nil {
		return nil
	}
	k.comparing.Lock()
	defer k.comparing.Unlock()
	k.mu.Lock()
	host := k.host
	k.mu.Unlock()
	err := k.compare(ctx, &host, nil)
	k.remember(host, err)
	return err
}

// Run calls Refresh until ctx ends. Where that fails, the ring refuses to encrypt before long.
func (k *Keyring) Run(ctx context.Context) {
	tick := time.NewTicker(keyring.ReportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = k.Refresh(ctx) // Ready reports it
		}
	}
}

// Leave ends what Join began.
func (k *Keyring) Leave(ctx context.Context) error {
	k.mu.Lock()
	host := k.host
	k.host = keyring.Host{}
	k.mu.Unlock()
	if host.ID == "" {
		return nil
	}
	return k.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return tx.KeyRings().Forget(ctx, host.ID) })
}

// Ready returns why the ring could not be used at the last check, or that the last check is longer ago than keyring.Trust.
func (k *Keyring) Ready() error {
	if k.base.Ring == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trouble == nil && k.base.Clock.Now().Sub(k.confirmed) > keyring.Trust {
		return errUnconfirmed
	}
	return k.trouble
}

var errUnconfirmed = errors.New("the metadata have not confirmed the key ring for " + keyring.Trust.String())

func (k *Keyring) remember(host keyring.Host, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if host.ID == "" || err == nil || k.host.ID != "" {
		k.host = host
	}
	var u unusable
	if err == nil || errors.As(err, &u) {
		k.trouble = err
	}
	if err == nil {
		k.confirmed = host.SeenAt
	}
}

// unusable is an error of the ring, and not of the store.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// compare compares the ring with what the metadata say of it, and has the ring encrypt with the primary. It stores what a host
// has that has joined, even if that is not enough.
func (k *Keyring) compare(ctx context.Context, host *keyring.Host, before func(context.Context, ports.Tx) error) error {
	has, err := k.base.Ring.Keys()
	if err != nil {
		return unusable{err}
	}
	keys, err := k.keys(ctx)
	if err != nil {
		return err
	}
	if _, registered := keys.Primary(); !registered {
		if err := k.register(ctx, has); err != nil {
			return err
		}
	}
	var lacking error
	err = k.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if before != nil {
			if err := tx.KeyRings().Lock(ctx); err != nil {
				return err
			}
			if err := before(ctx, tx); err != nil {
				return err
			}
		}
		keys, err := tx.KeyRings().Keys(ctx)
		if err != nil {
			return err
		}
		primary, _ := keys.Primary()
		lacking = nil
		if !has.Has(primary.Fingerprint) {
			lacking = errLacks(primary.Fingerprint)
		}
		host.Keys, host.Seals, host.SeenAt = has.Keys, primary.Fingerprint, k.base.Clock.Now()
		if joined := host.ID != "" && (before == nil || lacking == nil); joined {
			err = tx.KeyRings().Report(ctx, *host)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := k.base.Ring.SealWith(host.Seals); err != nil && lacking == nil {
		return unusable{err}
	}
	return lacking
}

func errLacks(f keyring.Fingerprint) error {
	return unusable{fmt.Errorf("the key ring does not have the key %s, with which stored secrets are encrypted: restore the ring "+
		"from its backup, or copy it from another host", f)}
}

func (k *Keyring) keys(ctx context.Context) (keyring.Keys, error) {
	return ports.Read(ctx, k.base.Store, func(ctx context.Context, tx ports.Tx) (keyring.Keys, error) {
		return tx.KeyRings().Keys(ctx)
	})
}

// Empty reports whether the installation has neither a registered ring nor anything that is encrypted.
func (k *Keyring) Empty(ctx context.Context) (bool, error) { return Empty(ctx, k.base.Store) }

// Empty is the question of that name without a control plane.
func Empty(ctx context.Context, store ports.Store) (bool, error) {
	return ports.Read(ctx, store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		keys, err := tx.KeyRings().Keys(ctx)
		if err != nil || len(keys) > 0 {
			return false, err
		}
		values, err := tx.SealedValues().Next(ctx, "", 1)
		return len(values) == 0, err
	})
}

// register makes a ring the installation's, unless another one is already.
func (k *Keyring) register(ctx context.Context, has keyring.Ring) error {
	if err := k.opensMost(ctx); err != nil {
		return err
	}
	now := k.base.Clock.Now()
	return k.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.KeyRings().Lock(ctx); err != nil {
			return err
		}
		keys, err := tx.KeyRings().Keys(ctx)
		if _, registered := keys.Primary(); err != nil || registered {
			return err
		}
		for _, f := range has.Keys {
			key := keyring.Key{Fingerprint: f, Status: keyring.Old, Since: now}
			if f == has.Own {
				key.Status = keyring.Primary
				if len(has.Keys) == 1 {
					key.ResealedAt = &now
				}
			}
			if err := tx.KeyRings().Put(ctx, key); err != nil {
				return err
			}
		}
		return k.audit(ctx, tx, audit.System, audit.KeyringRegistered, has.Own)
	})
}

// opensMost proves a ring on what is stored. What a wrong ring has written, or a damaged value, does not keep out the right one:
// that opens more than it does not.
func (k *Keyring) opensMost(ctx context.Context) error {
	opened, total := 0, 0
	err := k.eachSealed(ctx, func(v ports.SealedValue) error {
		total++
		if _, err := k.base.Secrets.Open(v.Sealed, v.Context); err == nil {
			opened++
		}
		return nil
	})
	if err == nil && 2*opened <= total && total > 0 {
		return unusable{fmt.Errorf("the key ring opens %d of %d stored secrets: it is not the one that they were encrypted with; "+
			"restore that from its backup, or copy it from another host", opened, total)}
	}
	return err
}

// audit is where every change of the ring is recorded.
func (k *Keyring) audit(
	ctx context.Context, tx ports.Tx, by audit.Actor, what audit.Action, keys ...keyring.Fingerprint,
) error {
	list := make([]string, len(keys))
	for i, f := range keys {
		list[i] = string(f)
	}
	return k.base.Audit(ctx, tx, database.Record{}, by, what, audit.Details{"keys": strings.Join(list, " ")})
}

// Known lists the keys that the metadata know.
func (k *Keyring) Known(ctx context.Context) (keyring.Keys, error) { return k.keys(ctx) }

// Hosts lists the hosts that count.
func (k *Keyring) Hosts(ctx context.Context) ([]keyring.Host, error) {
	return ports.Read(ctx, k.base.Store, func(ctx context.Context, tx ports.Tx) ([]keyring.Host, error) {
		return k.counted(ctx, tx)
	})
}

func (k *Keyring) counted(ctx context.Context, tx ports.Tx) ([]keyring.Host, error) {
	long := k.base.Clock.Now().Add(-keyring.ForgottenAfter)
	hosts, err := tx.KeyRings().Hosts(ctx)
	return slices.DeleteFunc(hosts, func(h keyring.Host) bool { return h.SeenAt.Before(long) }), err
}
