package operator

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// NewKey describes a new API key. Databases are those that a selected-database key reaches.
type NewKey struct {
	AccountID id.AccountID
	Label     string
	Scope     account.Scope
	Databases []id.DatabaseID
}

// CreateKey makes a key of the account's owner and returns its text, which cannot be retrieved later. It is for databases of the
// account, and for those of others on which the owner is a member. VALIDATION_ERROR on "label", "scope", "account" or "database",
// with an empty text.
func (o *Operator) CreateKey(ctx context.Context, n NewKey) (key account.Key, text string, err error) {
	label, err := account.ValidateLabel(n.Label)
	if err != nil {
		return key, "", err
	}
	if n.Scope != account.FullAccount && n.Scope != account.SelectedDatabases {
		return key, "", fault.Invalid("scope", "must be full or selected")
	}
	if (n.Scope == account.SelectedDatabases) != (len(n.Databases) > 0) {
		return key, "", fault.Invalid("database", "is given for a selected-database key, and only for one")
	}
	text, credential := account.NewKey(account.AccountKey, o.plane.Entropy.Base62(account.KeyCharacters))
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		a, err := tx.Accounts().Get(ctx, n.AccountID)
		if err != nil {
			return plane.NotFound(err, fault.Invalid("account", "does not exist"))
		}
		key = credential.Key(a, label, n.Scope, o.plane.Clock.Now())
		return addKey(ctx, tx, key, n.Databases)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return key, text, nil
}

// addKey stores a key and looks at its databases as it will. One that it could not reach today it might tomorrow, when its user
// becomes a member there, without anybody thinking of it again. The locks keep the memberships as they are meanwhile.
func addKey(ctx context.Context, tx ports.Tx, k account.Key, databases []id.DatabaseID) error {
	for _, db := range slices.Sorted(slices.Values(databases)) {
		if _, err := tx.Databases().Lock(ctx, db); err != nil {
			return plane.NotFound(err, fault.Invalid("database", "%s does not exist", db))
		}
	}
	if err := tx.Keys().Add(ctx, k, databases); err != nil {
		return err
	}
	viewer := ports.Viewer{AccountID: k.AccountID, UserID: k.UserID, KeyID: k.ID, Scope: k.Scope}
	for _, db := range databases {
		if _, _, err := tx.Databases().Reach(ctx, viewer, db); err != nil {
			return plane.NotFound(err, fault.Invalid("database", "%s is not one of the account's, its owner is no member of it, or it is "+
				"being deleted", db))
		}
	}
	return nil
}

// ReplaceKey gives a key of an account a new text; the old one stops working at once, label and scope stay. VALIDATION_ERROR on
// "key" where there is none, or it is revoked, or a CI key.
func (o *Operator) ReplaceKey(ctx context.Context, old id.KeyID) (key account.Key, text string, err error) {
	random := o.plane.Entropy.Base62(account.KeyCharacters)
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := o.usableKey(ctx, tx, account.AccountKey, old)
		if err != nil {
			return err
		}
		var c account.Credential
		text, c = account.NewKey(stored.Kind, random)
		key = stored
		key.ID, key.Hash, key.LastUsedAt = c.ID, c.Hash[:], nil
		return tx.Keys().Replace(ctx, old, key)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return key, text, nil
}

// RevokeKey revokes a key of an account at once and permanently. VALIDATION_ERROR as for ReplaceKey.
func (o *Operator) RevokeKey(ctx context.Context, key id.KeyID) error {
	return o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := o.usableKey(ctx, tx, account.AccountKey, key)
		if err != nil {
			return err
		}
		now := o.plane.Clock.Now()
		stored.RevokedAt = &now
		return tx.Keys().Revoke(ctx, stored)
	})
}

// commandOf is the command that is about keys of a kind.
var commandOf = map[account.KeyKind]string{account.AccountKey: "key", account.CIKey: "ci-key"}

// usableKey is a key of a kind that still works.
func (o *Operator) usableKey(ctx context.Context, tx ports.Tx, kind account.KeyKind, key id.KeyID) (account.Key, error) {
	stored, err := tx.Keys().Get(ctx, key)
	switch {
	case err != nil:
		return stored, plane.NotFound(err, fault.Invalid("key", "does not exist"))
	case stored.Kind != kind:
		return stored, fault.Invalid("key", "%s is a key of pgherd admin %s", stored.Prefix(), commandOf[stored.Kind])
	case stored.RevokedAt != nil:
		return stored, fault.Invalid("key", "is revoked")
	case stored.Expired(o.plane.Clock.Now()):
		return stored, fault.Invalid("key", "has expired")
	}
	return stored, nil
}

// Keys lists the keys of an account, CI keys too, with those who hold them, newest first, without their hashes.
func (o *Operator) Keys(ctx context.Context, a id.AccountID) ([]plane.By[account.Key], error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]plane.By[account.Key], error) {
		list, err := tx.Keys().List(ctx, a)
		if err != nil {
			return nil, err
		}
		return holders(ctx, tx, list)
	})
}

func holders(ctx context.Context, tx ports.Tx, keys []account.Key) ([]plane.By[account.Key], error) {
	for i := range keys {
		keys[i].Hash = nil
	}
	return plane.WithPersons(ctx, tx, keys, func(k account.Key) id.UserID { return k.UserID })
}
