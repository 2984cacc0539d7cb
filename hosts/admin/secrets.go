package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) secrets() *cobra.Command {
	return group("secrets", "the key ring that encrypts the stored secrets",
		m.secretsInit(), m.secretsKeys(), m.secretsHosts(), m.secretsStage(), m.secretsUnstage(), m.secretsPromote(),
		m.secretsRotate(), m.secretsPrune())
}

func (m *metadata) secretsInit() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "make the key ring of a new installation; no file and no ring is ever replaced or removed",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file", "metadata-url"); err != nil {
				return err
			}
			if _, err := os.Lstat(m.keyring); err == nil {
				return fmt.Errorf("%s: %w; %s", m.keyring, fs.ErrExist, howToGoOn)
			}
			err := m.hadNoRing(cmd.Context())
			empty := errors.Is(err, postgres.ErrSchemaEmpty)
			if err != nil && !empty {
				return err
			}
			if _, err := secretbox.Create(m.keyring); err != nil {
				return err
			}
			made := row{{"keyringFile", m.keyring}}
			if empty { // the first host registers the ring
				err = m.show(cmd, made)
			} else { // opening the ring registers it
				err = m.work(cmd, func(context.Context, *operator.Operator) (output, error) { return made, nil })
			}
			if err != nil { // it may be registered all the same, and then everything depends on it
				return fmt.Errorf("%w; %s was made and stays there: %s", err, m.keyring, howToGoOn)
			}
			return nil
		},
	}
}

// howToGoOn is for whoever has the file of a ring, and no word of what it is.
const howToGoOn = "pgherd admin secrets keys registers the ring of that file, or says that the installation has another one"

// hadNoRing is an error where the installation has a ring, or cannot be asked.
func (m *metadata) hadNoRing(ctx context.Context) error {
	console := wiring.Console{
		MetadataURL: m.url, Clock: system.NewClock(), Box: func() (ports.SecretBox, error) { return noKeyring{}, nil },
	}
	return console.Operate(ctx, func(ctx context.Context, o *operator.Operator) error {
		empty, err := o.Ring.Empty(ctx)
		if err == nil && !empty {
			err = errHasRing
		}
		return err
	})
}

var errHasRing = errors.New("this installation has a key ring, which its stored secrets need: restore that from its backup, " +
	"or copy it from another host")

func (m *metadata) secretsKeys() *cobra.Command {
	return m.command("keys", "list the keys that the metadata know, by their fingerprints",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			keys, err := o.Ring.Known(ctx)
			return tableOf(keys, func(k keyring.Key) row {
				return row{
					{"key", string(k.Fingerprint)}, {"status", string(k.Status)}, {"since", k.Since},
					{"resealedAt", k.ResealedAt},
				}
			}), err
		})
}

func (m *metadata) secretsHosts() *cobra.Command {
	return m.command("hosts", "list the hosts and which of the present keys each has",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			keys, err := o.Ring.Known(ctx)
			if err != nil {
				return nil, err
			}
			primary, _ := keys.Primary()
			staged, _ := keys.Staged()
			hosts, err := o.Ring.Hosts(ctx)
			return tableOf(hosts, func(h keyring.Host) row {
				return row{
					{"host", h.Name}, {"seenAt", h.SeenAt}, {"hasPrimary", h.Has(primary.Fingerprint)},
					{"hasStaged", h.Has(staged.Fingerprint)},
				}
			}), err
		})
}

// secretsStage writes the ring's file first: where it is cut off, it takes that key again.
func (m *metadata) secretsStage() *cobra.Command {
	return m.ringCommand("stage", "add a key to the ring's file that encrypts nothing yet; copy the file to every host then",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			staged, err := m.stage(ctx, o)
			return row{{"staged", string(staged)}}, err
		})
}

func (m *metadata) stage(ctx context.Context, o *operator.Operator) (keyring.Fingerprint, error) {
	keys, err := o.Ring.Known(ctx)
	if err != nil {
		return "", err
	}
	if staged, found := keys.Staged(); found {
		box, err := secretbox.Load(m.keyring)
		if err != nil {
			return "", err
		}
		has, err := box.Keys()
		if err == nil && !has.Has(staged.Fingerprint) {
			err = keyrings.ErrOtherStaged(staged.Fingerprint)
		}
		return staged.Fingerprint, err
	}
	fresh, err := secretbox.Stage(m.keyring, keys.Fingerprints())
	if err != nil {
		return "", err
	}
	return fresh, o.Ring.Stage(ctx, fresh)
}

func (m *metadata) secretsUnstage() *cobra.Command {
	return m.ringCommand("unstage", "give up the staged key, which has encrypted nothing",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			given, err := o.Ring.Unstage(ctx)
			if err != nil {
				return nil, err
			}
			return row{{"unstaged", string(given)}}, secretbox.Drop(m.keyring, []keyring.Fingerprint{given})
		})
}

func (m *metadata) secretsPromote() *cobra.Command {
	var c change
	cmd := m.ringCommand("promote", "have the staged key encrypt once every host has it, and encrypt every stored secret again",
		func(ctx context.Context, o *operator.Operator) (output, error) { return m.promote(ctx, o, c) })
	c.flags(cmd)
	return cmd
}

func (m *metadata) promote(ctx context.Context, o *operator.Operator, c change) (output, error) {
	done, err := whenReady(ctx, c.wait, func() (keyrings.Promotion, error) { return o.Ring.Promote(ctx, c.forget...) })
	if err != nil {
		return nil, err
	}
	found := row{
		{"primary", string(done.Primary)}, {"resealed", done.Resealed.Changed}, {"unreadable", done.Resealed.Unreadable},
	}
	return found, secretbox.Promote(m.keyring, done.Primary)
}

func (m *metadata) secretsRotate() *cobra.Command {
	var c change
	cmd := m.ringCommand("rotate", "stage and promote in one, where all hosts use this file",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			if _, err := m.stage(ctx, o); err != nil {
				return nil, err
			}
			return m.promote(ctx, o, c)
		})
	c.flags(cmd)
	return cmd
}

func (m *metadata) secretsPrune() *cobra.Command {
	var c change
	var settle time.Duration
	cmd := m.ringCommand("prune", "drop the old keys once no host and no stored secret needs them",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			if settle < 0 {
				return nil, fault.Invalid("settle", "must not be negative")
			}
			done, err := whenReady(ctx, c.wait, func() (keyrings.Pruned, error) { return o.Ring.Prune(ctx, settle, c.forget...) })
			if err != nil {
				return nil, err
			}
			if err := secretbox.Promote(m.keyring, done.Primary); err != nil { // the file of another machine, or after a crash
				return nil, err
			}
			found := row{{"dropped", done.Dropped}, {"resealed", done.Resealed.Changed}, {"unreadable", done.Resealed.Unreadable}}
			return found, secretbox.Drop(m.keyring, done.Dropped)
		})
	c.flags(cmd)
	cmd.Flags().DurationVar(&settle, "settle", keyring.DefaultSettle,
		"how long the primary must have encrypted: what was encrypted with an old key just before it is stored by then")
	return cmd
}

// ringCommand is a command that needs the ring's file.
func (m *metadata) ringCommand(
	use, short string, do func(context.Context, *operator.Operator) (output, error),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			return m.work(cmd, do)
		},
	}
}

// change is how a change of the ring waits for hosts.
type change struct {
	wait   time.Duration
	forget []string
}

func (c *change) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&c.wait, "wait", 2*keyring.ReportEvery, "how long to wait for hosts that are not ready")
	cmd.Flags().StringArrayVar(&c.forget, "forget", nil, "name of a host that is gone for good, as the error has it; repeatable")
}

// whenReady tries again while hosts are not ready, as long as it may.
func whenReady[T any](ctx context.Context, wait time.Duration, try func() (T, error)) (T, error) {
	for deadline := time.Now().Add(wait); ; {
		done, err := try()
		var waiting *keyring.NotReadyError
		if !errors.As(err, &waiting) || time.Now().After(deadline) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(readyPoll):
		}
	}
}

const readyPoll = 250 * time.Millisecond
