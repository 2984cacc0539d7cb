package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) namespace() *cobra.Command {
	var name string
	create := &cobra.Command{Use: "create", Short: "make a namespace for the previews of one pipeline"}
	create.Flags().StringVar(&name, "name", "", "name, unique in the account, for good")
	revoke := &cobra.Command{
		Use: "revoke", Short: "end all keys and trusts of a namespace, at once and for good; its previews stay as they are",
	}
	return group("ci-namespace", "namespaces of preview CI keys",
		onID(m, required(create, "name"), "account",
			func(ctx context.Context, o *operator.Operator, a id.AccountID) (output, error) {
				n, err := o.CreateNamespace(ctx, a, name)
				return row{{"namespaceId", n.ID}, {"name", n.Name}}, err
			}),
		m.namespaceList(),
		onID(m, revoke, "namespace", func(ctx context.Context, o *operator.Operator, n id.NamespaceID) (output, error) {
			return row{{"namespaceId", n}, {"status", "revoked"}}, o.RevokeNamespace(ctx, n)
		}))
}

func (m *metadata) namespaceList() *cobra.Command {
	var of string
	cmd := &cobra.Command{Use: "list", Short: "list the namespaces of an account or of all, the oldest first", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&of, "account", "", called[id.AccountID]()+"; by default all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			a, err := findAny[id.AccountID](ctx, o, "account", of)
			if err != nil {
				return nil, err
			}
			found, err := o.AllNamespaces(ctx, ports.NamespaceFilter{AccountID: a})
			return namespaceTable(found), err
		})
	}
	return cmd
}

func namespaceTable(list []ports.NamespaceEntry, known ...string) output {
	return tableOf(list, func(n ports.NamespaceEntry) row {
		return row{
			{"namespaceId", n.ID}, {"name", n.Name}, {"createdAt", n.CreatedAt}, {"revokedAt", n.RevokedAt},
			{"accountId", n.AccountID}, {"email", n.Email},
		}
	}).only("namespaceId", "createdAt", "name", "email", "revokedAt").without(known)
}

func (m *metadata) ciKey() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "make a preview CI key and print it; it cannot be shown again"}
	list := &cobra.Command{
		Use: "list", Short: "list the keys of a namespace, the newest first; those made of tokens for a day after their end",
	}
	return group("ci-key", "preview CI keys; only create prints the secret",
		onID(m, create, "namespace", func(ctx context.Context, o *operator.Operator, n id.NamespaceID) (output, error) {
			key, text, err := o.CreateCIKey(ctx, n)
			return append(row{{"kind", key.Kind}, {"namespaceId", key.NamespaceID}}, secretKey(key, text)...), err
		}),
		onID(m, list, "namespace", func(ctx context.Context, o *operator.Operator, n id.NamespaceID) (output, error) {
			keys, err := o.CIKeys(ctx, n)
			return keyTable(keys), err
		}),
		m.onKey("revoke", "revoke a CI key, at once and for good",
			func(ctx context.Context, o *operator.Operator, k id.KeyID) (output, error) {
				return row{{"keyId", k}, {"status", "revoked"}}, o.RevokeCIKey(ctx, k)
			}))
}

func (m *metadata) ciTrust() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "list the trusts of a namespace, the oldest first"}
	remove := &cobra.Command{Use: "remove", Short: "end a trust, and at once the keys that were made by it"}
	return group("ci-trust", "OIDC tokens of CI systems that may be exchanged for keys of a namespace",
		m.ciTrustAdd(),
		onID(m, list, "namespace", func(ctx context.Context, o *operator.Operator, n id.NamespaceID) (output, error) {
			found, err := o.Trusts(ctx, n)
			return tableOf(found, trustRow).only("trustId", "createdAt", "issuer", "audience", "subject"), err
		}),
		onID(m, remove, "trust", func(ctx context.Context, o *operator.Operator, t id.TrustID) (output, error) {
			return row{{"trustId", t}, {"status", "removed"}}, o.RemoveTrust(ctx, t)
		}))
}

func (m *metadata) ciTrustAdd() *cobra.Command {
	var n keys.NewTrust
	cmd := &cobra.Command{Use: "add", Short: "trust the tokens of an issuer for an audience, with some subjects"}
	f := cmd.Flags()
	f.StringVar(&n.Issuer, "issuer", "", "https URL of the issuer, to the letter as in its tokens")
	f.StringVar(&n.Audience, "audience", "", "audience that the tokens must be for, and no other")
	f.StringVar(&n.Subject, "subject", "",
		`as "repo:acme/shop:ref:refs/heads/*": * stands for characters up to the next colon, a final :** for all that follows`)
	return onID(m, required(cmd, "issuer", "audience", "subject"), "namespace",
		func(ctx context.Context, o *operator.Operator, namespace id.NamespaceID) (output, error) {
			n.NamespaceID = namespace
			trust, err := o.AddTrust(ctx, n)
			return trustRow(trust), err
		})
}

func trustRow(t citoken.Trust) row {
	return row{
		{"trustId", t.ID}, {"namespaceId", t.NamespaceID}, {"issuer", t.Issuer}, {"audience", t.Audience}, {"subject", t.Subject},
		{"createdAt", t.CreatedAt},
	}
}
