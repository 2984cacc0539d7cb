package admin

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

func (d *desk) secrets() *cobra.Command {
	return group("secrets", "the key ring that encrypts the stored secrets",
		d.secretsInit(), d.secretsRotate(), d.secretsPrune())
}

func (d *desk) secretsInit() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "make a new key ring; an existing file is never overwritten", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			if _, err := secretbox.Create(d.keyring); err != nil {
				return err
			}
			return d.show(cmd, record{{"keyringFile", d.keyring}})
		},
	}
}

// secretsRotate leaves the old keys in the ring: a host may be about to commit what it sealed a moment ago.
func (d *desk) secretsRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "add a new key and encrypt every stored secret with it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			if _, err := secretbox.Rotate(d.keyring); err != nil {
				return err
			}
			return d.work(cmd, func(ctx context.Context, o *controlplane.Operator) error {
				changed, err := o.Reseal(ctx)
				if err != nil {
					return err
				}
				return d.show(cmd, record{{"resealed", changed}})
			})
		},
	}
}

var errStillOld = errors.New("some stored secrets are still encrypted with an old key: run pgherd admin secrets rotate first")

func (d *desk) secretsPrune() *cobra.Command {
	return &cobra.Command{
		Use: "prune", Short: "drop the old keys once no stored secret needs them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			ring, err := secretbox.Load(d.keyring)
			if err != nil {
				return err
			}
			return d.work(cmd, func(ctx context.Context, o *controlplane.Operator) error {
				err := o.EachSealed(ctx, func(sealed []byte) error {
					if ring.NeedsReseal(sealed) {
						return errStillOld
					}
					return nil
				})
				if err != nil {
					return err
				}
				if _, err := secretbox.Prune(d.keyring); err != nil {
					return err
				}
				return d.show(cmd, record{{"pruned", true}})
			})
		},
	}
}
