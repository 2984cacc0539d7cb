package admin

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

func (m *metadata) secrets() *cobra.Command {
	return group("secrets", "the key ring that encrypts the stored secrets",
		m.secretsInit(), m.secretsRotate(), m.secretsPrune())
}

func (m *metadata) secretsInit() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "make a new key ring; an existing file is never overwritten", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			if _, err := secretbox.Create(m.keyring); err != nil {
				return err
			}
			return m.show(cmd, row{{"keyringFile", m.keyring}})
		},
	}
}

// secretsRotate leaves the old keys in the ring: a host may be about to commit what it sealed a moment ago.
func (m *metadata) secretsRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "add a new key and encrypt every stored secret with it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			if _, err := secretbox.Rotate(m.keyring); err != nil {
				return err
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				changed, err := o.Reseal(ctx)
				return row{{"resealed", changed}}, err
			})
		},
	}
}

var errStillOld = errors.New("some stored secrets are still encrypted with an old key: run pgherd admin secrets rotate first")

func (m *metadata) secretsPrune() *cobra.Command {
	return &cobra.Command{
		Use: "prune", Short: "drop the old keys once no stored secret needs them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			ring, err := secretbox.Load(m.keyring)
			if err != nil {
				return err
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				err := o.EachSealed(ctx, func(sealed []byte) error {
					if ring.NeedsReseal(sealed) {
						return errStillOld
					}
					return nil
				})
				if err != nil {
					return nil, err
				}
				_, err = secretbox.Prune(m.keyring)
				return row{{"pruned", true}}, err
			})
		},
	}
}
