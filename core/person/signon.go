package person

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
)

const (
	// SignOnTime is how long somebody may take at the issuer.
	SignOnTime = 10 * time.Minute
	// SignOnCharacters is how many random base62 characters a nonce and a verifier have: RFC 7636 wants 43 of a verifier.
	SignOnCharacters = 43

	// skew is by how much the issuer's clock may be off.
	skew = time.Minute
	// maxSubject is how long a subject is at most, in bytes (OpenID Connect Core, section 2).
	maxSubject = 255
	// maxState bounds what comes back as a state, in bytes.
	maxState = 1024
)

// Issuer is who says who people are, and by what name it knows the installation. The zero value is none.
type Issuer struct{ URL, ClientID string }

// SignOnRules are what an installation makes of sign-ons.
type SignOnRules struct {
	Name        string // of the issuer, for people
	Required    bool   // there is no other way in, but for links of the operator
	BothFactors bool   // an authenticator app is not asked for after a sign-on
}

// SignOn is one that is under way. Nothing is stored of it, so nobody fills a table: the browser carries it to the issuer and
// back as the state, sealed, and bound to a cookie.
//
// Who returns with it again has the cookie, that is, the same browser, and needs another code, since the issuer takes each once.
// The issuer gives a code for this nonce and this verifier only to who signs on there once more, and who does that gets no more
// than by a new sign-on. So it does no harm that one works until its time is over.
type SignOn struct {
	Nonce     string       `json:"nonce"`    // which the issuer repeats in what it signs
	Verifier  string       `json:"verifier"` // which the issuer wants with the code (PKCE)
	SessionID id.SessionID `json:"session"`  // that is proved once more; empty for a log-in
	Factor    bool         `json:"factor"`   // for a proof, a code of the authenticator app was given
	At        time.Time    `json:"at"`       // when it began
}

// SignOnContext is what a sealed sign-on is bound to.
func SignOnContext(cookie token.Hash) string { return "sign-on/" + hex.EncodeToString(cookie[:]) }

// Text is what is sealed.
func (s SignOn) Text() ([]byte, error) { return json.Marshal(s) }

// ParseSignOn reads what was sealed.
func ParseSignOn(text []byte) (s SignOn, err error) { return s, json.Unmarshal(text, &s) }

// State is a sealed sign-on as it stands in a URL.
func State(sealed []byte) string { return base64.RawURLEncoding.EncodeToString(sealed) }

// ParseState reads what came back as the state; false for a text that is none.
func ParseState(text string) (sealed []byte, ok bool) {
	if text == "" || len(text) > maxState || !ascii.Visible(text) { // base64 passes over line breaks
		return nil, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return sealed, err == nil
}

// Answers returns UNAUTHORIZED where the sign-on is too old, or began in another session.
func (s SignOn) Answers(in id.SessionID, now time.Time) error {
	if s.SessionID != in || !now.Before(s.At.Add(SignOnTime)) {
		return ErrSignOn()
	}
	return nil
}

// Told is what an issuer has signed about a person, or has told when it was asked with what it has signed.
type Told struct {
	Issuer, Subject string
	Audience        []string
	Party           string // to whom it was issued; empty where that is not said
	Nonce           string
	ExpiresAt       time.Time
	IssuedAt        time.Time
	NotBefore       time.Time
	AuthenticatedAt time.Time // when the person last logged in there; the zero value where that is not said
	Email           string
	Vouched         bool // that the address is the person's
}

// Doubt is why what an issuer has signed is not accepted. It is for the operator's log: people get ErrSignOn.
type Doubt string

// The doubts.
const (
	NotSigned     Doubt = "it is no ID token that the issuer has signed with a key of its own, or cannot be read"
	AnotherIssuer Doubt = "it names another issuer"
	NotForUs      Doubt = "it is not for this installation's client ID, or not for that alone"
	AnotherSignOn Doubt = "it answers another sign-on"
	NotNow        Doubt = "it has expired, or is not valid yet: compare the clocks"
	NoSubject     Doubt = "it names nobody, or nobody that can be stored"
	NotAnew       Doubt = "the person did not log in there since that was asked, or it does not say so in auth_time"
	AnotherPerson Doubt = "the person with the address is linked to another subject"
)

// Error implements error.
func (d Doubt) Error() string { return "what the issuer says is not accepted: " + string(d) }

// Accept returns a Doubt about what was told, which is signed by whom it names (OpenID Connect Core, section 3.1.3.7).
func (s SignOn) Accept(t Told, by Issuer, now time.Time) error {
	switch {
	case t.Issuer != by.URL:
		return AnotherIssuer
	case !t.isFor(by.ClientID):
		return NotForUs
	case s.Nonce == "" || subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(s.Nonce)) != 1:
		return AnotherSignOn
	case !t.ExpiresAt.After(now.Add(-skew)), t.NotBefore.After(now.Add(skew)), t.IssuedAt.After(now.Add(skew)):
		return NotNow
	case !storable(t.Subject):
		return NoSubject
	case s.SessionID != "" && (t.AuthenticatedAt.Before(s.At.Add(-skew)) || t.AuthenticatedAt.After(now.Add(skew))):
		return NotAnew
	}
	return nil
}

// isFor reports whether it was issued to a client, and whether for others too that client has asked.
func (t Told) isFor(client string) bool {
	if t.Party == "" && len(t.Audience) == 1 {
		return t.Audience[0] == client
	}
	return t.Party == client && slices.Contains(t.Audience, client)
}

// storable reports whether a subject is what the standard allows: ASCII, and not too long. Letter case counts.
func storable(subject string) bool {
	for i := range len(subject) {
		if subject[i] < ' ' || subject[i] > '~' {
			return false
		}
	}
	return subject != "" && len(subject) <= maxSubject
}

// Address is the person's address, as addresses are compared. FORBIDDEN where the issuer does not vouch for one that can be a
// user's.
func (t Told) Address() (string, error) {
	email, err := account.ValidateEmail(t.Email)
	if err != nil || !t.Vouched || len(email) != len(t.Email) { // with blanks it may be another one to the issuer
		return "", fault.New(fault.Forbidden, "your sign-on does not vouch for your mail address; tell its administrator")
	}
	return email, nil
}

// ProvedAt is when the person proved who they are, as far as the issuer says: it lets a browser pass that has logged in there
// long ago. Where it does not say, that was too long ago for what needs a recent proof.
func (t Told) ProvedAt(now time.Time) time.Time {
	switch {
	case t.AuthenticatedAt.IsZero():
		return now.Add(-Life)
	case t.AuthenticatedAt.After(now): // its clock may be off
		return now
	}
	return t.AuthenticatedAt
}

// Identity is who a person is to an issuer. A person has one at each, and it is nobody else's.
type Identity struct {
	Issuer    string    `db:"issuer"`
	Subject   string    `db:"subject"`
	UserID    id.UserID `db:"user_id"`
	CreatedAt time.Time `db:"created_at"`
}

// IdentityAt is the identity that a list has at an issuer, and whether there is one.
func IdentityAt(issuer string, list []Identity) (Identity, bool) {
	for _, i := range list {
		if i.Issuer == issuer {
			return i, true
		}
	}
	return Identity{}, false
}

// ErrRequired is FEATURE_NOT_AVAILABLE for every other way in, where people have to sign on.
func (r SignOnRules) ErrRequired() error {
	return fault.New(fault.FeatureNotAvailable, "people log in by %s here, and in no other way", r.Name)
}
