package operator

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
func (o *Operator) AddTrust(ctx context.Context, n NewTrust) (citoken.Trust, error) {
	trust, err := citoken.NewTrust(n.Issuer, n.Audience, n.Subject)
	if err != nil {
		return citoken.Trust{}, err
	}
	trust.ID, trust.NamespaceID, trust.CreatedAt = base.NewID[id.TrustID](o.base.Entropy), n.NamespaceID, o.base.Clock.Now()
	err = o.updateNamespace(ctx, n.NamespaceID, func(ctx context.Context, tx ports.Tx, n account.Namespace) error {
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
		return o.auditCI(ctx, tx, n, audit.CITrustAdded, aboutTrust(trust))
	})
	return trust, err
}

func aboutTrust(t citoken.Trust) audit.Details {
	return audit.Details{
		"trustId": string(t.ID), "issuer": t.Issuer, "audience": t.Audience, "subject": string(t.Subject),
	}
}

// Trusts lists the trusts of a namespace, oldest first. VALIDATION_ERROR on "namespace".
func (o *Operator) Trusts(ctx context.Context, namespace id.NamespaceID) ([]citoken.Trust, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]citoken.Trust, error) {
		if _, err := tx.Namespaces().Get(ctx, namespace); err != nil {
			return nil, notFound(err, "namespace")
		}
		return tx.Trusts().List(ctx, namespace)
	})
}

// RemoveTrust ends a trust, and at once all keys that were made by it. VALIDATION_ERROR on "trust".
func (o *Operator) RemoveTrust(ctx context.Context, t id.TrustID) error {
	trust, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (citoken.Trust, error) {
		return tx.Trusts().Get(ctx, t)
	})
	if err != nil {
		return notFound(err, "trust")
	}
	return o.updateNamespace(ctx, trust.NamespaceID, func(ctx context.Context, tx ports.Tx, n account.Namespace) error {
		if err := tx.Trusts().Remove(ctx, t, o.base.Clock.Now()); err != nil {
			return notFound(err, "trust")
		}
		return o.auditCI(ctx, tx, n, audit.CITrustRemoved, aboutTrust(trust))
	})
}
