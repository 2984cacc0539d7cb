package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
)

// SignOn speaks with the one OpenID Connect issuer of an installation, by authorization codes with PKCE (S256). It checks who has
// signed; what was signed is the caller's to judge.
//
// FEATURE_NOT_AVAILABLE: the installation has no issuer. SERVER_BUSY: the issuer does not answer in time, or refuses the
// installation itself; the cause says which, and has no code, token or secret.
type SignOn interface {
	// Issuer is whom it asks.
	Issuer() person.Issuer
	// Begin returns the URL at which the issuer asks who somebody is.
	Begin(ctx context.Context, q SignOnRequest) (url string, err error)
	// Finish returns what the issuer says for a code. UNAUTHORIZED: it does not take the code with this verifier; or the answer
	// names another issuer, or none although this one always names itself (RFC 9207), and nothing was sent. person.NotSigned: what
	// it returns is not signed by it with an asymmetric algorithm, or cannot be read.
	Finish(ctx context.Context, a SignOnAnswer) (person.Told, error)
}

// SignOnRequest is what the browser takes to the issuer.
type SignOnRequest struct {
	State, Nonce string
	Verifier     string // of which the issuer gets the challenge
	Anew         bool   // the person shall log in there, also where a log-in of before would do
}

// SignOnAnswer is what the browser brings back, and the verifier of the request.
type SignOnAnswer struct {
	Code, Verifier string
	Issuer         string // as the answer names it; empty where it does not
}

// NoSignOn is for an installation without an issuer.
type NoSignOn struct{}

func errNoSignOn() error {
	return fault.New(fault.FeatureNotAvailable, "this installation has no sign-on")
}

// Issuer is none.
func (NoSignOn) Issuer() person.Issuer { return person.Issuer{} }

// Begin refuses with FEATURE_NOT_AVAILABLE.
func (NoSignOn) Begin(context.Context, SignOnRequest) (string, error) { return "", errNoSignOn() }

// Finish refuses with FEATURE_NOT_AVAILABLE.
func (NoSignOn) Finish(context.Context, SignOnAnswer) (person.Told, error) {
	return person.Told{}, errNoSignOn()
}

// Identities keeps who people are to issuers. Who adds or removes one holds the person's lock.
type Identities interface {
	// Add stores an identity. ErrNoRow where there is no such user. VALIDATION_ERROR on "subject" where it is somebody's, or the
	// person has another one at the issuer.
	Add(ctx context.Context, i person.Identity) error
	// BySubject returns the identity of a subject, in exactly these letters; ErrNoRow when there is none.
	BySubject(ctx context.Context, issuer, subject string) (person.Identity, error)
	// Of returns the identities of a person, the oldest first.
	Of(ctx context.Context, user id.UserID) ([]person.Identity, error)
	// Remove deletes the identities of a person; ErrNoRow when there are none.
	Remove(ctx context.Context, user id.UserID) error
}
