// Package fakesignon is an OpenID Connect issuer of people, without cryptography and network.
package fakesignon

import (
	"context"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Issuer implements ports.SignOn. It is safe for concurrent use.
type Issuer struct {
	Clock ports.Clock
	// Change is done to what it says, so that it says something wrong; nil: nothing.
	Change func(*person.Told)

	mu    sync.Mutex
	away  bool
	codes map[string]code
}

// code is what a code stands for.
type code struct {
	challenge string
	told      person.Told
}

var _ ports.SignOn = (*Issuer)(nil)

// New makes an issuer that answers.
func New(c ports.Clock) *Issuer { return &Issuer{Clock: c, codes: map[string]code{}} }

// Issuer implements ports.SignOn.
func (*Issuer) Issuer() person.Issuer {
	return person.Issuer{URL: "https://login.example.org", ClientID: "pgherd"}
}

// Away has it answer nobody from now on, or again.
func (i *Issuer) Away(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away = away
}

func (i *Issuer) answers() error {
	if i.away {
		return fault.New(fault.ServerBusy, "the sign-on does not answer")
	}
	return nil
}

// Begin implements ports.SignOn.
func (i *Issuer) Begin(_ context.Context, q ports.SignOnRequest) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	query := url.Values{"state": {q.State}, "nonce": {q.Nonce}, "code_challenge": {q.Verifier}}
	if q.Anew {
		query.Set("prompt", "login")
	}
	return i.Issuer().URL + "/authorize?" + query.Encode(), i.answers()
}

// Finish implements ports.SignOn.
func (i *Issuer) Finish(_ context.Context, a ports.SignOnAnswer) (person.Told, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.answers(); err != nil {
		return person.Told{}, err
	}
	c, known := i.codes[a.Code]
	if !known || c.challenge != a.Verifier || a.Issuer != "" && a.Issuer != i.Issuer().URL {
		return person.Told{}, person.ErrSignOn()
	}
	delete(i.codes, a.Code)
	return c.told, nil
}

// Person is somebody whom the issuer knows.
type Person struct {
	Subject, Email string
	Unverified     bool // the address
	// LoggedIn is when, where the issuer would not ask again; the zero value: it asks each time, and the person logs in.
	LoggedIn time.Time
}

// Visits is a browser that opens a URL of Begin in which a person logs in. It returns the state and the code that the browser
// brings back.
func (i *Issuer) Visits(address string, who Person) (state, given string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	now, query := i.Clock.Now(), u.Query()
	told := person.Told{
		Issuer: i.Issuer().URL, Subject: who.Subject, Audience: []string{i.Issuer().ClientID}, Nonce: query.Get("nonce"),
		IssuedAt: now, ExpiresAt: now.Add(5 * time.Minute), AuthenticatedAt: now, Email: who.Email, Vouched: !who.Unverified,
	}
	if query.Get("prompt") != "login" && !who.LoggedIn.IsZero() {
		told.AuthenticatedAt = who.LoggedIn
	}
	if i.Change != nil {
		i.Change(&told)
	}
	given = "code-" + strconv.Itoa(len(i.codes)) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	i.codes[given] = code{query.Get("code_challenge"), told}
	return query.Get("state"), given
}
