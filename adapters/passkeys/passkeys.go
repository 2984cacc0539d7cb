// Package passkeys verifies passkeys, by go-webauthn.
package passkeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Verifier implements ports.PasskeyVerifier. It is safe for concurrent use.
type Verifier struct{ relying *webauthn.WebAuthn }

// Site is where people log in. Passkeys belong to Host for ever: with another one all are lost.
type Site struct {
	Host   string // its name, without a port
	Origin string // as browsers send it: scheme, name and, where it is not the scheme's, the port
	Name   string // as devices show it
}

// check returns an error for a site whose passkeys no browser would make.
func (s Site) check() error {
	u, err := url.Parse(s.Origin)
	switch {
	case s.Host == "" || s.Name == "":
		return errors.New("passkeys: a site has a host name and a name")
	case err != nil || u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost"):
		return fmt.Errorf("passkeys: the origin %q is not https, nor this machine's", s.Origin)
	case u.Hostname() != s.Host && !strings.HasSuffix(u.Hostname(), "."+s.Host):
		return fmt.Errorf("passkeys: the origin %q is not within the host name %q", s.Origin, s.Host)
	}
	return nil
}

// New makes a verifier.
func New(s Site) (*Verifier, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	relying, err := webauthn.New(&webauthn.Config{
		RPID: s.Host, RPOrigins: []string{s.Origin}, RPDisplayName: s.Name,
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
		// The challenge ends with its ceremony; these are for the device.
		Timeouts: webauthn.TimeoutsConfig{
			Login:        webauthn.TimeoutConfig{Timeout: person.CeremonyTime, TimeoutUVD: person.CeremonyTime},
			Registration: webauthn.TimeoutConfig{Timeout: person.CeremonyTime, TimeoutUVD: person.CeremonyTime},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return &Verifier{relying}, nil
}

// owner implements webauthn.User.
type owner struct {
	ports.PasskeyOwner
	credentials []webauthn.Credential
}

func (o owner) WebAuthnID() []byte                         { return o.Handle }
func (o owner) WebAuthnName() string                       { return o.Email }
func (o owner) WebAuthnDisplayName() string                { return o.Name }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.credentials }

func ownerOf(of ports.PasskeyOwner) (owner, error) {
	o := owner{of, make([]webauthn.Credential, len(of.Records))}
	for i, record := range of.Records {
		if err := json.Unmarshal(record, &o.credentials[i]); err != nil {
			return o, fmt.Errorf("a stored passkey: %w", err)
		}
	}
	return o, nil
}

// both encodes options and state.
func both(options any, session *webauthn.SessionData) (text, state []byte, err error) {
	if text, err = json.Marshal(options); err != nil {
		return nil, nil, err
	}
	state, err = json.Marshal(session)
	return text, state, err
}

// BeginRegistration implements ports.PasskeyVerifier.
func (v *Verifier) BeginRegistration(of ports.PasskeyOwner) (options, state []byte, err error) {
	o, err := ownerOf(of)
	if err != nil {
		return nil, nil, err
	}
	creation, session, err := v.relying.BeginRegistration(o,
		webauthn.WithExclusions(webauthn.Credentials(o.credentials).CredentialDescriptors()))
	if err != nil {
		return nil, nil, err
	}
	return both(creation, session)
}

// FinishRegistration implements ports.PasskeyVerifier.
func (v *Verifier) FinishRegistration(of ports.PasskeyOwner, state, response []byte) (credential, record []byte, err error) {
	o, err := ownerOf(of)
	if err != nil {
		return nil, nil, err
	}
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return nil, nil, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return nil, nil, person.ErrPasskey()
	}
	made, err := v.relying.CreateCredential(o, session, parsed)
	if err != nil {
		return nil, nil, person.ErrPasskey()
	}
	record, err = json.Marshal(made)
	return made.ID, record, err
}

// BeginLogIn implements ports.PasskeyVerifier.
func (v *Verifier) BeginLogIn() (options, state []byte, err error) {
	assertion, session, err := v.relying.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, nil, err
	}
	return both(assertion, session)
}

// FinishLogIn implements ports.PasskeyVerifier. A counter that goes back is a copy of a device, and refused.
func (v *Verifier) FinishLogIn(
	state, response []byte, find func(credential []byte) (ports.PasskeyOwner, error),
) (credential, record []byte, err error) {
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return nil, nil, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return nil, nil, person.ErrPasskey()
	}
	var failed error
	_, used, err := v.relying.ValidatePasskeyLogin(func(credential, _ []byte) (webauthn.User, error) {
		of, err := find(credential)
		if err == nil {
			var o owner
			if o, err = ownerOf(of); err == nil {
				return o, nil
			}
		}
		failed = err
		return nil, err
	}, session, parsed)
	switch {
	case failed != nil:
		return nil, nil, failed
	case err != nil, used.Authenticator.CloneWarning:
		return nil, nil, person.ErrPasskey()
	}
	record, err = json.Marshal(used)
	return used.ID, record, err
}
