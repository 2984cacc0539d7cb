package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) key() *cobra.Command {
	return group("key", "API keys of accounts; only create and replace print the secret",
		m.keyCreate(), m.keySet(), m.keyReplace(), m.keyRevoke(), m.keyList())
}

func (m *metadata) keyCreate() *cobra.Command {
	var accountID, label, scope string
	var databases []string
	var bounds keyBounds
	cmd := &cobra.Command{
		Use: "create", Short: "make a key and print it; it cannot be shown again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given, err := bounds.read()
			if err != nil {
				return err
			}
			return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
				n, err := newKey(ctx, o, accountID, label, scope, databases)
				if err != nil {
					return nil, err
				}
				n.Bounds = given
				key, text, err := o.CreateKey(ctx, n)
				return append(secretKey(key, text), boundsRow(key)...), err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&accountID, "account", "", called[id.AccountID]())
	f.StringVar(&label, "label", "", "what the key is for")
	f.StringVar(&scope, "scope", string(account.FullAccount), "full or selected")
	f.StringArrayVar(&databases, "database", nil, "ID or name of a database that a key of scope selected reaches; may be repeated")
	bounds.flags(cmd)
	return required(cmd, "account", "label")
}

func newKey(
	ctx context.Context, o *operator.Operator, accountID, label, scope string, databases []string,
) (n keys.NewKey, err error) {
	if n.AccountID, err = find[id.AccountID](ctx, o, "account", accountID); err != nil {
		return n, err
	}
	n.Label, n.Scope = label, account.Scope(scope)
	if n.Scope != account.FullAccount && n.Scope != account.SelectedDatabases {
		return n, fault.Invalid("scope", "must be full or selected")
	}
	for _, text := range databases {
		db, err := find[id.DatabaseID](ctx, o, "database", text)
		if err != nil {
			return n, err
		}
		n.Databases = append(n.Databases, db)
	}
	return n, nil
}

func secretKey(k account.Key, text string) row {
	return row{{"keyId", k.ID}, {"prefix", k.Prefix()}, {"apiKey", text}}
}

func (m *metadata) keySet() *cobra.Command {
	var bounds keyBounds
	cmd := m.onKey("set", "change when a key ends, or where it may be used from, from the next request on",
		func(ctx context.Context, o *operator.Operator, k id.KeyID) (output, error) {
			given, err := bounds.read()
			if err != nil {
				return nil, err
			}
			key, err := o.BindKey(ctx, k, given)
			return append(row{{"keyId", key.ID}, {"prefix", key.Prefix()}}, boundsRow(key)...), err
		})
	bounds.flags(cmd)
	cmd.MarkFlagsOneRequired("expires", "network")
	return cmd
}

func (m *metadata) keyReplace() *cobra.Command {
	var bounds keyBounds
	cmd := m.onKey("replace", "give a key a new secret and print it; the old secret stops working at once",
		func(ctx context.Context, o *operator.Operator, k id.KeyID) (output, error) {
			given, err := bounds.read()
			if err != nil {
				return nil, err
			}
			key, text, err := o.ReplaceKey(ctx, k, given)
			return append(secretKey(key, text), boundsRow(key)...), err
		})
	bounds.flags(cmd)
	return cmd
}

func (m *metadata) keyRevoke() *cobra.Command {
	return m.onKey("revoke", "revoke a key of an account, at once and for good",
		func(ctx context.Context, o *operator.Operator, k id.KeyID) (output, error) {
			return row{{"keyId", k}, {"status", "revoked"}}, o.RevokeKey(ctx, k)
		})
}

func (m *metadata) onKey(
	use, short string, do func(context.Context, *operator.Operator, id.KeyID) (output, error),
) *cobra.Command {
	return onID(m, &cobra.Command{Use: use, Short: short}, "key", do)
}

func (m *metadata) keyList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list the keys of an account, its CI keys too, the newest first"}
	return onID(m, cmd, "account", func(ctx context.Context, o *operator.Operator, a id.AccountID) (output, error) {
		keys, err := o.Keys(ctx, a)
		return keyTable(keys), err
	})
}

// keyTable shows people all but what goes without saying.
func keyTable(keys []base.By[account.Key], known ...string) output {
	return tableOf(keys, keyRow).only("prefix", "kind", "scope", "createdAt", "lastUsedAt", "email", "label", "revokedAt",
		"expiresAt", "networks", "namespaceId", "issuer", "subject").without(known)
}

func keyRow(by base.By[account.Key]) row {
	k := by.What
	shown := append(row{
		{"keyId", k.ID}, {"prefix", k.Prefix()}, {"kind", k.Kind}, {"label", k.Label},
	}, reachRow(k)...)
	shown = append(append(shown, boundsRow(k)...), row{
		{"createdAt", k.CreatedAt}, {"lastUsedAt", k.LastUsedAt}, {"revokedAt", k.RevokedAt},
		{"issuer", some(k.Issuer)}, {"subject", some(k.Subject)},
	}...)
	return append(shown, personRow(by.Person)...)
}

// reachRow is what a key reaches: a CI key has no scope, but its namespace.
func reachRow(k account.Key) row {
	if k.Kind == account.CIKey {
		return row{{"scope", nil}, {"namespaceId", k.NamespaceID}}
	}
	return row{{"scope", k.Scope}, {"namespaceId", nil}}
}

// some is a text, or nil where it is empty.
func some(text string) any {
	if text == "" {
		return nil
	}
	return text
}
