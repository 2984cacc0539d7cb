package citoken

import (
	"net/url"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
)

// Trust lets the tokens of an issuer for an audience, with the subjects of a pattern, make keys of a namespace.
type Trust struct {
	ID          id.TrustID     `db:"id"`
	NamespaceID id.NamespaceID `db:"namespace_id"`
	Issuer      string         `db:"issuer"`
	Audience    string         `db:"audience"`
	Subject     Pattern        `db:"subject"`
	CreatedAt   time.Time      `db:"created_at"`
}

// MaxTrusts is how many trusts a namespace may have.
const MaxTrusts = 20

const (
	maxIssuer   = 255
	maxAudience = 255
)

// NewTrust checks a trust, which has no ID, namespace and time yet. VALIDATION_ERROR on "issuer", "audience" or "subject".
func NewTrust(issuer, audience, subject string) (Trust, error) {
	if err := checkIssuer(issuer); err != nil {
		return Trust{}, err
	}
	if !visible(audience, maxAudience) {
		return Trust{}, fault.Invalid("audience", "must have 1-%d characters, all of them printable ASCII", maxAudience)
	}
	pattern, err := ParsePattern(subject)
	return Trust{Issuer: issuer, Audience: audience, Subject: pattern}, err
}

// checkIssuer accepts an https URL without query and fragment (OpenID Connect Discovery, section 3). It is compared with what
// tokens say to the letter, and so is kept as it is. Whether its address may be asked is decided when it is asked.
func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case !visible(issuer, maxIssuer):
		return fault.Invalid("issuer", "must have 1-%d characters, all of them printable ASCII", maxIssuer)
	case err != nil:
		return fault.Invalid("issuer", "is not a URL")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fault.Invalid("issuer", "must be a URL without query and fragment")
	}
	if _, err := (webhook.Policy{AllowPrivate: true}).ParseURL(issuer); err != nil {
		return fault.Invalid("issuer", "must be the https:// URL that stands in the issuer's tokens")
	}
	return nil
}

// ErrTooManyTrusts is the answer to one trust more than MaxTrusts.
func ErrTooManyTrusts() error {
	return fault.Invalid("namespace", "has %d trusts already, which is the most", MaxTrusts)
}

// ErrTrusted is the answer to a trust that the namespace has already.
func ErrTrusted() error {
	return fault.Invalid("subject", "is trusted already, with that issuer and audience")
}
