// Package citokens exchanges OIDC tokens of CI systems for preview CI keys that live for an hour, so that a pipeline needs no
// stored key.
package citokens

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// Tokens exchanges tokens.
type Tokens struct{ base *base.Base }

// New makes the use case, and registers what forgets tokens and keys that are over.
func New(p *base.Base) *Tokens {
	t := &Tokens{base: p}
	rounds.Register(p.Rounds, rounds.Task{Name: "ended CI tokens", Every: time.Minute, Do: t.sweep})
	return t
}

// Presented is what a pipeline presents.
type Presented struct {
	NamespaceID string
	Token       string
	Client      netip.Addr
	RequestID   string
}

// Exchanged is the key that it gets. Text cannot be retrieved later.
type Exchanged struct {
	Key  account.Key // without its hash
	Text string
}

// Exchange makes a key of a namespace for a token that the namespace trusts. A token works once.
//
// VALIDATION_ERROR on "namespaceId" or "token". UNAUTHORIZED, the same whatever the cause, for a token that is refused, also
// where there is no such namespace; the journal has the cause, and nothing of the token. RATE_LIMITED: the client's address has
// presented too many tokens to the namespace, or that has as many such keys as may work at a time; the token is not spent then.
func (t *Tokens) Exchange(ctx context.Context, p Presented) (Exchanged, error) {
	namespace, err := id.Parse[id.NamespaceID](p.NamespaceID)
	if err != nil {
		return Exchanged{}, fault.Invalid("namespaceId", "must be a lowercase UUID")
	}
	if err := citoken.CheckText(p.Token); err != nil {
		return Exchanged{}, err
	}
	if err := t.admit(ctx, namespace, p.Client); err != nil {
		return Exchanged{}, err
	}
	made, err := t.exchange(ctx, namespace, p.Token)
	var why citoken.Refusal
	if errors.As(err, &why) {
		t.base.Journal.Log(ctx, ports.JournalEvent{
			What: "ci_token.refused", NamespaceID: namespace, RequestID: p.RequestID, Err: why,
		})
		return Exchanged{}, citoken.ErrRefused()
	}
	return made, err
}

// admit counts a token by the client's address and the namespace, whether there is one of that ID or not. Pipelines of several
// customers may share an address, such as that of a CI system: refused tokens of one do not keep out others.
func (t *Tokens) admit(ctx context.Context, namespace id.NamespaceID, client netip.Addr) error {
	return t.base.TakeOne(ctx, ratelimit.Token, ratelimit.Source(client)+"/"+string(namespace),
		"too many tokens for this namespace from this address")
}

func (t *Tokens) exchange(ctx context.Context, namespace id.NamespaceID, token string) (Exchanged, error) {
	trusts, err := ports.Read(ctx, t.base.Store, func(ctx context.Context, tx ports.Tx) ([]citoken.Trust, error) {
		return tx.Trusts().List(ctx, namespace)
	})
	switch {
	case err != nil:
		return Exchanged{}, err
	case len(trusts) == 0:
		return Exchanged{}, citoken.NoNamespace
	}
	claims, err := t.base.Tokens.Verify(ctx, token, citoken.Issuers(trusts))
	if err != nil {
		return Exchanged{}, err
	}
	// Most of what is refused is refused here, and never locks the namespace.
	if _, err := citoken.Decide(trusts, claims, t.base.Clock.Now()); err != nil {
		return Exchanged{}, err
	}
	return t.make(ctx, namespace, claims)
}

// make decides again in the transaction that makes the key: meanwhile the trust may have gone, and the token may be spent.
func (t *Tokens) make(ctx context.Context, namespace id.NamespaceID, claims citoken.Claims) (made Exchanged, err error) {
	text, credential := account.NewKey(account.CIKey, t.base.Entropy.Base62(account.KeyCharacters))
	err = t.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		n, trust, err := t.decide(ctx, tx, namespace, claims)
		if err != nil {
			return err
		}
		owner, err := tx.Accounts().Get(ctx, n.AccountID)
		if err == nil {
			err = owner.Served()
		}
		if err != nil {
			return err
		}
		now := t.base.Clock.Now()
		end := now.Add(citoken.KeyLife)
		key := n.CIKey(credential, owner, now)
		key.ExpiresAt, key.TrustID, key.Issuer, key.Subject = &end, trust.ID, claims.Issuer, claims.Subject
		if err := tx.Keys().Add(ctx, key, nil); err != nil {
			return err
		}
		made = Exchanged{Key: key, Text: text}
		made.Key.Hash = nil
		return t.base.Audit(ctx, tx, database.Record{AccountID: owner.ID}, access.ActorOf(key), audit.CIKeyExchanged,
			audit.Details{
				"namespaceId": string(n.ID), "namespace": n.Name, "trustId": string(trust.ID),
				"issuer": claims.Issuer, "subject": claims.Subject,
			})
	})
	if err != nil {
		return Exchanged{}, err
	}
	return made, nil
}

// decide locks the namespace, and spends the token.
func (t *Tokens) decide(
	ctx context.Context, tx ports.Tx, namespace id.NamespaceID, claims citoken.Claims,
) (n account.Namespace, trust citoken.Trust, err error) {
	n, err = tx.Namespaces().Lock(ctx, namespace)
	if err == nil && n.RevokedAt != nil {
		err = citoken.NoNamespace
	}
	if err != nil {
		return n, trust, base.NotFound(err, citoken.NoNamespace)
	}
	trusts, err := tx.Trusts().List(ctx, namespace)
	if err != nil {
		return n, trust, err
	}
	now := t.base.Clock.Now()
	if trust, err = citoken.Decide(trusts, claims, now); err != nil {
		return n, trust, err
	}
	fresh, err := tx.Trusts().Spend(ctx, claims.Spent())
	if err == nil && !fresh {
		err = citoken.AlreadySpent
	}
	if err != nil {
		return n, trust, err
	}
	live, err := tx.Namespaces().Live(ctx, namespace, now)
	if err == nil {
		err = live.Admit(now)
	}
	return n, trust, err
}

// sweep forgets in pieces, so that no transaction is a long one.
func (t *Tokens) sweep(ctx context.Context, now time.Time) error {
	for {
		var done int
		err := t.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			done, err = tx.Trusts().Sweep(ctx, now, now.Add(-citoken.KeptFor), base.RoundBatch)
			return err
		})
		if err != nil || done < base.RoundBatch {
			return err
		}
	}
}
