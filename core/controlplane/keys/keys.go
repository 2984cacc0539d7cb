package keys

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/ports"
)

// NewKey describes a new API key. Databases are those that a selected-database key reaches.
type NewKey struct {
	AccountID id.AccountID
	Label     string
	Scope     account.Scope
	Databases []id.DatabaseID
	Bounds
}

// Bounds are when a key ends and where it may be used from. What is nil stays as it is; a new key then never ends, or may be
// used from everywhere.
type Bounds struct {
	Expires  *account.Expiry
	Networks *network.List
}

// apply gives a key its bounds. VALIDATION_ERROR on "expires".
func (b Bounds) apply(k *account.Key, now time.Time) (err error) {
	if b.Networks != nil {
		k.Networks = *b.Networks
	}
	if b.Expires != nil {
		k.ExpiresAt, err = b.Expires.Ends(now)
	}
	return err
}

// CreateKey makes a key of the account's owner and returns its text, which cannot be retrieved later. It is for databases of
// the account, and for those of others on which the owner is a member. VALIDATION_ERROR on "label", "scope", "account",
// "database" or "expires", with an empty text. PLAN_API_ACCESS_REQUIRED: a person's plan has no API.
func (d *Desk) CreateKey(ctx context.Context, n NewKey) (key account.Key, text string, err error) {
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
	text, credential := account.NewKey(account.AccountKey, d.base.Entropy.Base62(account.KeyCharacters))
	err = d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		a, err := d.admitsNew(ctx, tx, n.AccountID)
		if err != nil {
			return err
		}
		now := d.base.Clock.Now()
		key = credential.Key(a, label, n.Scope, now)
		if err := n.apply(&key, now); err != nil {
			return err
		}
		if err := addKey(ctx, tx, key, n.Databases); err != nil {
			return err
		}
		details := aboutKey(key)
		maps.Copy(details, boundsOf(key))
		details["scope"] = string(key.Scope)
		if len(n.Databases) > 0 {
			details["databases"] = joined(n.Databases)
		}
		return d.record(ctx, tx, key.AccountID, audit.KeyCreated, details)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return key, text, nil
}

// aboutKey is what the log says of a key.
func aboutKey(k account.Key) audit.Details { return audit.Details{"key": k.Prefix(), "label": k.Label} }

// boundsOf are what Bounds change, as the log has them.
func boundsOf(k account.Key) audit.Details {
	bounds := audit.Details{"expiresAt": "never", "networks": "any"}
	if k.ExpiresAt != nil {
		bounds["expiresAt"] = k.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if k.Networks != "" {
		bounds["networks"] = string(k.Networks)
	}
	return bounds
}

func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = string(one)
	}
	return strings.Join(texts, " ")
}

// addKey stores a key and checks that it sees its databases. Otherwise it would begin to see one later, when its user becomes a
// member there, and that would surprise. The locks keep the memberships as they are meanwhile.
func addKey(ctx context.Context, tx ports.Tx, k account.Key, databases []id.DatabaseID) error {
	for _, db := range slices.Sorted(slices.Values(databases)) {
		if _, err := tx.Databases().Lock(ctx, db); err != nil {
			return base.NotFound(err, fault.Invalid("database", "%s does not exist", db))
		}
	}
	if err := tx.Keys().Add(ctx, k, databases); err != nil {
		return err
	}
	viewer := database.Viewer{AccountID: k.AccountID, UserID: k.UserID, KeyID: k.ID, Scope: k.Scope}
	for _, db := range databases {
		if _, _, err := access.See(ctx, tx, viewer, db); err != nil {
			return base.NotFound(err, fault.Invalid("database", "%s is not one of the account's, its owner is no member of it, or it is "+
				"being deleted", db))
		}
	}
	return nil
}

// ReplaceKey gives a key of an account a new text, and other bounds where some are given; the old text stops working at once,
// label and scope stay. VALIDATION_ERROR on "expires", or on "key" where there is none, it is revoked or a CI key, or has
// expired and gets no other end.
func (d *Desk) ReplaceKey(ctx context.Context, old id.KeyID, bounds Bounds) (key account.Key, text string, err error) {
	random := d.base.Entropy.Base62(account.KeyCharacters)
	err = d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := d.unrevokedKey(ctx, tx, account.AccountKey, old)
		if err != nil {
			return err
		}
		if _, err := d.admitsNew(ctx, tx, stored.AccountID); err != nil {
			return err
		}
		now := d.base.Clock.Now()
		var c account.Credential
		text, c = account.NewKey(stored.Kind, random)
		key = stored
		key.ID, key.Hash, key.LastUsedAt = c.ID, c.Hash[:], nil
		if err := bounds.apply(&key, now); err != nil {
			return err
		}
		if key.Expired(now) {
			return errExpired()
		}
		if err := tx.Keys().Replace(ctx, old, key); err != nil {
			return err
		}
		if err := tx.Keys().Bind(ctx, key); err != nil {
			return err
		}
		details := aboutKey(key)
		maps.Copy(details, audit.Changes(boundsOf(stored), boundsOf(key)))
		details["replaces"] = stored.Prefix()
		return d.record(ctx, tx, key.AccountID, audit.KeyReplaced, details)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return key, text, nil
}

// BindKey changes the bounds of a key of an account, from the next request on. One that has expired can be given another end.
// VALIDATION_ERROR on "expires", or on "key" where there is none, or it is revoked or a CI key.
func (d *Desk) BindKey(ctx context.Context, of id.KeyID, bounds Bounds) (key account.Key, err error) {
	err = d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if key, err = d.unrevokedKey(ctx, tx, account.AccountKey, of); err != nil {
			return err
		}
		before := boundsOf(key)
		if err := bounds.apply(&key, d.base.Clock.Now()); err != nil {
			return err
		}
		if err := tx.Keys().Bind(ctx, key); err != nil {
			return err
		}
		return d.recordChanges(ctx, tx, key.AccountID, audit.KeyChanged, aboutKey(key), audit.Changes(before, boundsOf(key)))
	})
	key.Hash = nil
	return key, err
}

// RevokeKey revokes a key of an account at once and permanently. VALIDATION_ERROR on "key" where there is none, or it is revoked
// or a CI key.
func (d *Desk) RevokeKey(ctx context.Context, key id.KeyID) error {
	return d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := d.unrevokedKey(ctx, tx, account.AccountKey, key)
		if err != nil {
			return err
		}
		now := d.base.Clock.Now()
		stored.RevokedAt = &now
		if err := tx.Keys().Revoke(ctx, stored); err != nil {
			return err
		}
		return d.record(ctx, tx, stored.AccountID, audit.KeyRevoked, aboutKey(stored))
	})
}

// commandOf is the command that is about keys of a kind.
var commandOf = map[account.KeyKind]string{account.AccountKey: "key", account.CIKey: "ci-key"}

// usableKey is a key of a kind that still works.
func (d *Desk) usableKey(ctx context.Context, tx ports.Tx, kind account.KeyKind, key id.KeyID) (account.Key, error) {
	stored, err := d.unrevokedKey(ctx, tx, kind, key)
	if err == nil && stored.Expired(d.base.Clock.Now()) {
		err = errExpired()
	}
	return stored, err
}

func errExpired() error { return fault.Invalid("key", "has expired") }

// unrevokedKey returns a key of a kind, locked.
func (d *Desk) unrevokedKey(ctx context.Context, tx ports.Tx, kind account.KeyKind, key id.KeyID) (account.Key, error) {
	stored, err := tx.Keys().Lock(ctx, key)
	switch {
	case err != nil:
		return stored, missing(err, "key")
	case d.admits(stored.AccountID, "key") != nil:
		return account.Key{}, d.admits(stored.AccountID, "key")
	case stored.Kind != kind:
		return stored, fault.Invalid("key", "%s is a key of pgherd admin %s", stored.Prefix(), commandOf[stored.Kind])
	case stored.RevokedAt != nil:
		return stored, fault.Invalid("key", "is revoked")
	}
	return stored, nil
}

// Keys lists the keys of an account, CI keys too, with those who hold them, newest first, without their hashes.
func (d *Desk) Keys(ctx context.Context, a id.AccountID) ([]base.By[account.Key], error) {
	return ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]base.By[account.Key], error) {
		if err := d.admits(a, "account"); err != nil {
			return nil, err
		}
		list, err := tx.Keys().List(ctx, a)
		if err != nil {
			return nil, err
		}
		return holders(ctx, tx, list)
	})
}

func holders(ctx context.Context, tx ports.Tx, keys []account.Key) ([]base.By[account.Key], error) {
	for i := range keys {
		keys[i].Hash = nil
	}
	return base.WithPersons(ctx, tx, keys, func(k account.Key) id.UserID { return k.UserID })
}
