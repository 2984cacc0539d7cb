package keys

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Pipelines is where a program says, with a full-account key, whose tokens the CI namespaces of its account trust. The keys that
// tokens are exchanged for reach the previews of one namespace, which is less than its own key does. It makes no namespace and no
// key, and no preview CI key can use it.
type Pipelines struct{ base *base.Base }

// NewPipelines makes the use cases.
func NewPipelines(p *base.Base) *Pipelines { return &Pipelines{p} }

// ReachedNamespace is a namespace of the caller's account, also a revoked one. Only Pipelines.Reach creates one, so it proves
// that the scope was checked.
type ReachedNamespace struct {
	access.Passage
	id id.NamespaceID
}

// Reach finds a namespace of the caller's account. KEY_SCOPE_DENIED: not a full-account key. NAMESPACE_NOT_FOUND: it is missing
// or of another account. FEATURE_NOT_AVAILABLE or FEATURE_DISABLED: a gate is closed.
func (p *Pipelines) Reach(
	ctx context.Context, c access.Caller, namespace id.NamespaceID, gates ...rollout.Gate,
) (ReachedNamespace, error) {
	if err := c.RequireFullAccountKey(); err != nil {
		return ReachedNamespace{}, err
	}
	missing := fault.New(fault.NamespaceNotFound, "no such CI namespace")
	return access.Find(ctx, p.base.Store, c, gates, missing, func(ctx context.Context, tx ports.Tx, passage access.Passage) (
		ReachedNamespace, error,
	) {
		n, err := tx.Namespaces().Get(ctx, namespace)
		if err == nil && n.AccountID != c.Account.ID {
			err = ports.ErrNoRow
		}
		return ReachedNamespace{passage, n.ID}, err
	})
}

// desk is one whose changes are a key's, as long as that works.
func (p *Pipelines) desk(c access.Caller) *Desk { return &Desk{base: p.base, caller: &c} }

// Namespaces lists the namespaces of the caller's account, revoked ones too, oldest first. KEY_SCOPE_DENIED.
func (p *Pipelines) Namespaces(ctx context.Context, c access.Caller) ([]account.Namespace, error) {
	if err := c.RequireFullAccountKey(); err != nil {
		return nil, err
	}
	return p.desk(c).Namespaces(ctx, c.Account.ID)
}

// Trusts lists the trusts of a namespace, oldest first. A revoked one has none.
func (p *Pipelines) Trusts(ctx context.Context, r ReachedNamespace) ([]citoken.Trust, error) {
	return p.desk(r.Caller()).Trusts(ctx, r.id)
}

// AddTrust is Desk.AddTrust for the namespace. UNAUTHORIZED: the key has ended meanwhile.
func (p *Pipelines) AddTrust(ctx context.Context, r ReachedNamespace, issuer, audience, subject string) (citoken.Trust, error) {
	return p.desk(r.Caller()).AddTrust(ctx, NewTrust{NamespaceID: r.id, Issuer: issuer, Audience: audience, Subject: subject})
}

// RemoveTrust ends a trust of the namespace, and at once all keys that were made by it. TRUST_NOT_FOUND: it is missing, or of
// another namespace. UNAUTHORIZED: the key has ended meanwhile.
func (p *Pipelines) RemoveTrust(ctx context.Context, r ReachedNamespace, t id.TrustID) error {
	gone := fault.New(fault.TrustNotFound, "no such trust of this namespace")
	trust, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (citoken.Trust, error) {
		trust, err := tx.Trusts().Get(ctx, t)
		if err == nil && trust.NamespaceID != r.id {
			err = ports.ErrNoRow
		}
		return trust, base.NotFound(err, gone)
	})
	if err != nil {
		return err
	}
	return p.desk(r.Caller()).removeTrust(ctx, trust, gone)
}
