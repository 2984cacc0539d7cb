package keys

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// NewTrust describes a trust.
type NewTrust struct {
	NamespaceID               id.NamespaceID
	Issuer, Audience, Subject string
}

// AddTrust lets tokens make keys of a namespace. VALIDATION_ERROR on "namespace", "issuer", "audience" or "subject".
func (d *Desk) AddTrust(ctx context.Context, n NewTrust) (citoken.Trust, error) {
	trust, err := citoken.NewTrust(n.Issuer, n.Audience, n.Subject)
	if err != nil {
		return citoken.Trust{}, err
	}
	trust.ID, trust.NamespaceID, trust.CreatedAt = base.NewID[id.TrustID](d.base.Entropy), n.NamespaceID, d.base.Clock.Now()
	err = d.updateNamespace(ctx, n.NamespaceID, func(ctx context.Context, tx ports.Tx, n account.Namespace) error {
		if _, err := d.admitsNew(ctx, tx, n.AccountID); err != nil {
			return err
		}
		list, err := tx.Trusts().List(ctx, n.ID)
		switch {
		case err != nil:
			return err
		case len(list) >= citoken.MaxTrusts:
			return citoken.ErrTooManyTrusts()
		}
		if err := tx.Trusts().Add(ctx, trust); err != nil {
			return err
		}
		return d.auditCI(ctx, tx, n, audit.CITrustAdded, aboutTrust(trust))
	})
	return trust, err
}

func aboutTrust(t citoken.Trust) audit.Details {
	return audit.Details{
		"trustId": string(t.ID), "issuer": t.Issuer, "audience": t.Audience, "subject": string(t.Subject),
	}
}

// Trusts lists the trusts of a namespace, oldest first. VALIDATION_ERROR on "namespace".
func (d *Desk) Trusts(ctx context.Context, namespace id.NamespaceID) ([]citoken.Trust, error) {
	return ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]citoken.Trust, error) {
		if err := d.sees(ctx, tx, namespace); err != nil {
			return nil, err
		}
		return tx.Trusts().List(ctx, namespace)
	})
}

// RemoveTrust ends a trust, and at once all keys that were made by it. VALIDATION_ERROR on "trust".
func (d *Desk) RemoveTrust(ctx context.Context, t id.TrustID) error {
	trust, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) (citoken.Trust, error) {
		trust, err := tx.Trusts().Get(ctx, t)
		if err != nil {
			return trust, missing(err, "trust")
		}
		n, err := tx.Namespaces().Get(ctx, trust.NamespaceID)
		if err != nil {
			return trust, err
		}
		return trust, d.admits(n.AccountID, "trust")
	})
	if err != nil {
		return err
	}
	return d.removeTrust(ctx, trust, missing(ports.ErrNoRow, "trust"))
}

// removeTrust is RemoveTrust of a trust that was found. The error is gone where it is not there any more.
func (d *Desk) removeTrust(ctx context.Context, trust citoken.Trust, gone error) error {
	return d.updateNamespace(ctx, trust.NamespaceID, func(ctx context.Context, tx ports.Tx, n account.Namespace) error {
		if err := tx.Trusts().Remove(ctx, trust.ID, d.base.Clock.Now()); err != nil {
			return base.NotFound(err, gone)
		}
		return d.auditCI(ctx, tx, n, audit.CITrustRemoved, aboutTrust(trust))
	})
}
