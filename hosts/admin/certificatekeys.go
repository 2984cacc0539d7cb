package admin

import (
	"context"
	"encoding/base64"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) certificateKey() *cobra.Command {
	return group("certificate-key", "the keys that sign restore certificates; no command prints a private part",
		m.command("create", "make the first key; without one there are no certificates",
			func(ctx context.Context, o *operator.Operator) (output, error) {
				k, err := o.CreateCertificateKey(ctx)
				return certificateKeyRow(k), err
			}),
		m.certificateKeyRotate(),
		m.command("list", "list every key that ever signed, newest first",
			func(ctx context.Context, o *operator.Operator) (output, error) {
				keys, err := o.CertificateKeys(ctx)
				return tableOf(keys, certificateKeyRow).only("keyId", "createdAt", "retiredAt", "publicKey"), err
			}))
}

func (m *metadata) certificateKeyRotate() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use: "rotate", Short: "make a new key, and destroy the private part of the one that signed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var named id.CertificateKeyID
			if text != "" {
				if named, err = parse[id.CertificateKeyID]("key", text); err != nil {
					return err
				}
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				retired, fresh, err := o.RotateCertificateKey(ctx, named)
				return append(certificateKeyRow(fresh), field{"replaces", retired.ID}), err
			})
		},
	}
	cmd.Flags().StringVar(&text, "key", "",
		"ID of the key to replace, if it signs; by default the one that signs, if it has for a minute")
	return cmd
}

func certificateKeyRow(k certificate.Key) row {
	return row{
		{"keyId", k.ID}, {"publicKey", base64.StdEncoding.EncodeToString(k.PublicKey)}, {"createdAt", k.CreatedAt},
		{"retiredAt", k.RetiredAt},
	}
}
