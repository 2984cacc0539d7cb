package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
)

// Namespaces keeps what CI keys are bound to. Keys stores new keys.
type Namespaces interface {
	// Add stores a namespace. A name that the account already uses is VALIDATION_ERROR on "name".
	Add(ctx context.Context, n account.Namespace) error
	// Get returns a namespace; ErrNoRow when there is none.
	Get(ctx context.Context, n id.NamespaceID) (account.Namespace, error)
	// Lock is Get, and locks the namespace until the transaction ends. Whoever makes a key or a trust of it, or revokes it, holds
	// the lock.
	Lock(ctx context.Context, n id.NamespaceID) (account.Namespace, error)
	// List returns the namespaces of an account, revoked ones too, oldest first.
	List(ctx context.Context, of id.AccountID) ([]account.Namespace, error)
	// Revoke stores RevokedAt, also for each key of the namespace that has none, and removes its trusts.
	Revoke(ctx context.Context, n account.Namespace) error
	// Keys returns the keys of a namespace, newest first.
	Keys(ctx context.Context, of id.NamespaceID) ([]account.Key, error)
	// Live counts the exchanged keys of a namespace that work.
	Live(ctx context.Context, of id.NamespaceID, now time.Time) (citoken.Live, error)
}

// Trusts keeps what namespaces trust, and which tokens were exchanged.
type Trusts interface {
	// Add stores a trust. VALIDATION_ERROR on "subject" where the namespace has the same one.
	Add(ctx context.Context, t citoken.Trust) error
	// Get returns a trust; ErrNoRow when there is none.
	Get(ctx context.Context, t id.TrustID) (citoken.Trust, error)
	// List returns the trusts of a namespace, oldest first.
	List(ctx context.Context, of id.NamespaceID) ([]citoken.Trust, error)
	// Remove removes a trust, and revokes the keys that were made by it. ErrNoRow when there is none.
	Remove(ctx context.Context, t id.TrustID, now time.Time) error
	// Spend records that a token is exchanged; false where that was recorded before. Of several transactions that spend one token at
	// the same time, the others wait for the first.
	Spend(ctx context.Context, s citoken.Spent) (bool, error)
	// Sweep forgets up to limit tokens, and removes up to limit exchanged keys, whose time was over before, and returns how many
	// they were together.
	Sweep(ctx context.Context, tokens, keys time.Time, limit int) (int, error)
}

// TokenVerifier knows the issuers of OIDC tokens.
type TokenVerifier interface {
	// Verify returns what a token says, if the issuer that it names is one of those given, to the letter, and has signed it with an
	// asymmetric algorithm. It decides nothing else: times, audience and subject are the caller's to judge. An error is a
	// citoken.Refusal: NotSigned or NotAsked; where the context has ended, it may be the context's.
	//
	// Keys of issuers are asked for over the network, and kept for a while. An issuer that is slow or gone holds up nobody who asks
	// about another one.
	Verify(ctx context.Context, token string, issuers []string) (citoken.Claims, error)
}

// NoTokens is the verifier of an installation that takes no tokens: it refuses each.
type NoTokens struct{}

// Verify refuses.
func (NoTokens) Verify(context.Context, string, []string) (citoken.Claims, error) {
	return citoken.Claims{}, citoken.NotAsked
}
