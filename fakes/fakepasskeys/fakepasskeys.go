// Package fakepasskeys verifies passkeys without cryptography, and has the devices that go with that.
package fakepasskeys

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Verifier implements ports.PasskeyVerifier. Its responses prove nothing.
type Verifier struct{ Entropy ports.Entropy }

// Response is what a device answers.
type Response struct {
	Challenge, Credential, Handle []byte
	Verified                      bool // the device has asked for a finger
}

type options struct {
	Challenge, Handle []byte
	Exclude           [][]byte
}

func (v Verifier) challenge() []byte { return []byte(v.Entropy.Base62(32)) }

func encoded(v any) []byte {
	text, _ := json.Marshal(v) // these types are always encoded
	return text
}

// BeginRegistration implements ports.PasskeyVerifier.
func (v Verifier) BeginRegistration(o ports.PasskeyOwner) (asked, state []byte, err error) {
	c := v.challenge()
	return encoded(options{c, o.Handle, o.Records}), c, nil
}

// FinishRegistration implements ports.PasskeyVerifier.
func (Verifier) FinishRegistration(o ports.PasskeyOwner, state, response []byte) (credential, record []byte, err error) {
	var r Response
	if json.Unmarshal(response, &r) != nil || !r.Verified || !bytes.Equal(r.Challenge, state) || !bytes.Equal(r.Handle, o.Handle) ||
		len(r.Credential) == 0 {
		return nil, nil, person.ErrPasskey()
	}
	return r.Credential, r.Credential, nil
}

// BeginLogIn implements ports.PasskeyVerifier.
func (v Verifier) BeginLogIn() (asked, state []byte, err error) {
	c := v.challenge()
	return encoded(options{Challenge: c}), c, nil
}

// FinishLogIn implements ports.PasskeyVerifier.
func (Verifier) FinishLogIn(
	state, response []byte, find func(credential []byte) (ports.PasskeyOwner, error),
) (credential, record []byte, err error) {
	var r Response
	if json.Unmarshal(response, &r) != nil || !bytes.Equal(r.Challenge, state) {
		return nil, nil, person.ErrPasskey()
	}
	o, err := find(r.Credential)
	if err != nil {
		return nil, nil, err
	}
	known := slices.ContainsFunc(o.Records, func(record []byte) bool { return bytes.Equal(record, r.Credential) })
	if !r.Verified || !known || !bytes.Equal(r.Handle, o.Handle) {
		return nil, nil, person.ErrPasskey()
	}
	return r.Credential, r.Credential, nil
}

// Device is a person's.
type Device struct {
	credential, handle []byte
	Careless           bool // it does not ask for a finger
}

// NewDevice makes one whose passkey has a name of its own.
func NewDevice(name string) *Device { return &Device{credential: []byte(name)} }

// Registers answers what BeginRegistration asks; nil where the device has one of the passkeys that are excluded.
func (d *Device) Registers(asked []byte) []byte {
	var o options
	if json.Unmarshal(asked, &o) != nil ||
		slices.ContainsFunc(o.Exclude, func(known []byte) bool { return bytes.Equal(known, d.credential) }) {
		return nil
	}
	d.handle = o.Handle
	return encoded(Response{o.Challenge, d.credential, d.handle, !d.Careless})
}

// Signs answers what BeginLogIn asks.
func (d *Device) Signs(asked []byte) []byte {
	var o options
	if json.Unmarshal(asked, &o) != nil {
		return nil
	}
	return encoded(Response{o.Challenge, d.credential, d.handle, !d.Careless})
}
