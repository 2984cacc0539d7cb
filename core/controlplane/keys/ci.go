package keys

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// CreateNamespace makes a namespace for the previews of one pipeline. VALIDATION_ERROR on "account" or "name"; the name of a
// revoked one stays taken.
func (d *Desk) CreateNamespace(ctx context.Context, a id.AccountID, name string) (account.Namespace, error) {
	name, err := account.ValidateName(name)
	if err != nil {
		return account.Namespace{}, err
	}
	n := account.Namespace{
		ID: base.NewID[id.NamespaceID](d.base.Entropy), AccountID: a, Name: name, CreatedAt: d.base.Clock.Now(),
	}
	err = d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if _, err := d.admitsNew(ctx, tx, a); err != nil {
			return err
		}
		if err := tx.Namespaces().Add(ctx, n); err != nil {
			return err
		}
		return d.auditCI(ctx, tx, n, audit.NamespaceCreated, audit.Details{})
	})
	return n, err
}

// Namespaces lists the namespaces of an account, revoked ones too, oldest first. VALIDATION_ERROR on "account".
func (d *Desk) Namespaces(ctx context.Context, a id.AccountID) ([]account.Namespace, error) {
	return ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]account.Namespace, error) {
		if _, err := tx.Accounts().Get(ctx, a); err != nil {
			return nil, missing(err, "account")
		}
		if err := d.admits(a, "account"); err != nil {
			return nil, err
		}
		return tx.Namespaces().List(ctx, a)
	})
}

// RevokeNamespace ends all keys and trusts of a namespace at once and permanently; none can be made of it again. Its previews
// stay as they are. VALIDATION_ERROR on "namespace" where there is none, or it is revoked.
func (d *Desk) RevokeNamespace(ctx context.Context, namespace id.NamespaceID) error {
	return d.updateNamespace(ctx, namespace, func(ctx context.Context, tx ports.Tx, n account.Namespace) error {
		now := d.base.Clock.Now()
		n.RevokedAt = &now
		if err := tx.Namespaces().Revoke(ctx, n); err != nil {
			return err
		}
		return d.auditCI(ctx, tx, n, audit.NamespaceRevoked, audit.Details{})
	})
}

// updateNamespace runs fn in a transaction that has locked a namespace which is not revoked.
func (d *Desk) updateNamespace(
	ctx context.Context, namespace id.NamespaceID, fn func(context.Context, ports.Tx, account.Namespace) error,
) error {
	return d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Namespaces().Lock(ctx, namespace)
		if err == nil {
			err = d.admits(n.AccountID, "namespace")
		}
		if err == nil && n.RevokedAt != nil {
			err = fault.Invalid("namespace", "is revoked")
		}
		if err != nil {
			return missing(err, "namespace")
		}
		return fn(ctx, tx, n)
	})
}

// sees returns VALIDATION_ERROR on "namespace" where there is none.
func (d *Desk) sees(ctx context.Context, tx ports.Tx, namespace id.NamespaceID) error {
	n, err := tx.Namespaces().Get(ctx, namespace)
	if err != nil {
		return missing(err, "namespace")
	}
	return d.admits(n.AccountID, "namespace")
}

// auditCI adds an entry about a namespace to the log of its account.
func (d *Desk) auditCI(
	ctx context.Context, tx ports.Tx, n account.Namespace, what audit.Action, details audit.Details,
) error {
	details["namespaceId"], details["namespace"] = string(n.ID), n.Name
	return d.record(ctx, tx, n.AccountID, what, details)
}

// CreateCIKey makes a CI key of a namespace and returns its text, which cannot be retrieved later. VALIDATION_ERROR on
// "namespace" where there is none, or it is revoked.
func (d *Desk) CreateCIKey(ctx context.Context, namespace id.NamespaceID) (key account.Key, text string, err error) {
	text, credential := account.NewKey(account.CIKey, d.base.Entropy.Base62(account.KeyCharacters))
	err = d.updateNamespace(ctx, namespace, func(ctx context.Context, tx ports.Tx, n account.Namespace) error {
		a, err := d.admitsNew(ctx, tx, n.AccountID)
		if err != nil {
			return err
		}
		key = n.CIKey(credential, a, d.base.Clock.Now())
		if err := tx.Keys().Add(ctx, key, nil); err != nil {
			return err
		}
		return d.auditCI(ctx, tx, n, audit.CIKeyCreated, audit.Details{"key": key.Prefix()})
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return key, text, nil
}

// CIKeys lists the keys of a namespace, newest first, without their hashes. VALIDATION_ERROR on "namespace".
func (d *Desk) CIKeys(ctx context.Context, namespace id.NamespaceID) ([]base.By[account.Key], error) {
	return ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]base.By[account.Key], error) {
		if err := d.sees(ctx, tx, namespace); err != nil {
			return nil, err
		}
		list, err := tx.Namespaces().Keys(ctx, namespace)
		if err != nil {
			return nil, err
		}
		return holders(ctx, tx, list)
	})
}

// RevokeCIKey revokes a CI key at once and permanently. VALIDATION_ERROR on "key" where there is none, or it works no more, or is
// a key of an account.
func (d *Desk) RevokeCIKey(ctx context.Context, key id.KeyID) error {
	return d.update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := d.usableKey(ctx, tx, account.CIKey, key)
		if err != nil {
			return err
		}
		n, err := tx.Namespaces().Get(ctx, stored.NamespaceID)
		if err != nil {
			return err
		}
		now := d.base.Clock.Now()
		stored.RevokedAt = &now
		if err := tx.Keys().Revoke(ctx, stored); err != nil {
			return err
		}
		return d.auditCI(ctx, tx, n, audit.CIKeyRevoked, audit.Details{"key": stored.Prefix()})
	})
}
