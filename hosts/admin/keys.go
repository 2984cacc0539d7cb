package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) key() *cobra.Command {
	return group("key", "API keys; only create and replace print the secret",
		m.keyCreate(), m.keyReplace(), m.keyRevoke(), m.keyList())
}

func (m *metadata) keyCreate() *cobra.Command {
	var accountID, label, scope string
	var databases []string
	cmd := &cobra.Command{
		Use: "create", Short: "make a key and print it; it cannot be shown again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := newKey(accountID, label, scope, databases)
			if err != nil {
				return err
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) error {
				key, text, err := o.CreateKey(ctx, n)
				if err != nil {
					return err
				}
				return m.show(cmd, secretKey(key, text))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&accountID, "account", "", "account ID")
	f.StringVar(&label, "label", "", "what the key is for")
	f.StringVar(&scope, "scope", string(account.FullAccount), "full or selected")
	f.StringArrayVar(&databases, "database", nil, "ID of a database that a key of scope selected reaches; may be repeated")
	return required(cmd, "account", "label")
}

func newKey(accountID, label, scope string, databases []string) (n operator.NewKey, err error) {
	if n.AccountID, err = parse[id.AccountID]("account", accountID); err != nil {
		return n, err
	}
	n.Label, n.Scope = label, account.Scope(scope)
	if n.Scope != account.FullAccount && n.Scope != account.SelectedDatabases {
		return n, fault.Invalid("scope", "must be full or selected")
	}
	for _, text := range databases {
		db, err := parse[id.DatabaseID]("database", text)
		if err != nil {
			return n, err
		}
		n.Databases = append(n.Databases, db)
	}
	return n, nil
}

func secretKey(k account.Key, text string) record {
	return record{{"keyId", k.ID}, {"prefix", k.Prefix()}, {"apiKey", text}}
}

func (m *metadata) keyReplace() *cobra.Command {
	var keyID string
	cmd := &cobra.Command{
		Use: "replace", Short: "give a key a new secret and print it; the old secret stops working at once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) error {
				key, text, err := o.ReplaceKey(ctx, id.KeyID(keyID))
				if err != nil {
					return err
				}
				return m.show(cmd, secretKey(key, text))
			})
		},
	}
	cmd.Flags().StringVar(&keyID, "key", "", "key ID")
	return required(cmd, "key")
}

func (m *metadata) keyRevoke() *cobra.Command {
	var keyID string
	cmd := &cobra.Command{
		Use: "revoke", Short: "revoke a key, at once and for good", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) error {
				if err := o.RevokeKey(ctx, id.KeyID(keyID)); err != nil {
					return err
				}
				return m.show(cmd, record{{"keyId", keyID}, {"status", "revoked"}})
			})
		},
	}
	cmd.Flags().StringVar(&keyID, "key", "", "key ID")
	return required(cmd, "key")
}

func (m *metadata) keyList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list the keys of an account"}
	return onID(m, cmd, "account", func(ctx context.Context, o *operator.Operator, a id.AccountID) error {
		keys, err := o.Keys(ctx, a)
		if err != nil {
			return err
		}
		return list(m, cmd, keys, keyRow)
	})
}

func keyRow(k account.Key) record {
	return record{
		{"keyId", k.ID}, {"prefix", k.Prefix()}, {"label", k.Label}, {"scope", k.Scope},
		{"createdAt", stamp(&k.CreatedAt)}, {"lastUsedAt", stamp(k.LastUsedAt)}, {"revokedAt", stamp(k.RevokedAt)},
	}
}

func (m *metadata) namespace() *cobra.Command {
	var name string
	cmd := &cobra.Command{Use: "create", Short: "make a namespace for the previews of one pipeline"}
	cmd.Flags().StringVar(&name, "name", "", "name, unique in the account")
	return group("ci-namespace", "namespaces of preview CI keys", onID(m, required(cmd, "name"), "account",
		func(ctx context.Context, o *operator.Operator, a id.AccountID) error {
			n, err := o.CreateNamespace(ctx, a, name)
			if err != nil {
				return err
			}
			return m.show(cmd, record{{"namespaceId", n.ID}, {"name", n.Name}})
		}))
}

func (m *metadata) ciKey() *cobra.Command {
	cmd := &cobra.Command{Use: "create", Short: "make a preview CI key and print it; it cannot be shown again"}
	return group("ci-key", "preview CI keys", onID(m, cmd, "namespace",
		func(ctx context.Context, o *operator.Operator, n id.NamespaceID) error {
			key, text, err := o.CreateCIKey(ctx, n)
			if err != nil {
				return err
			}
			return m.show(cmd, secretKey(key, text))
		}))
}
