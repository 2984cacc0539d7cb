package passkeys_test

import (
	"encoding/json"
	"errors"
	"testing"

	virtual "github.com/descope/virtualwebauthn"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/passkeys"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

var (
	site  = passkeys.Site{Host: "db.example.org", Origin: "https://db.example.org:8443", Name: "Databases"}
	party = virtual.RelyingParty{ID: site.Host, Name: site.Name, Origin: site.Origin}
	ada   = ports.PasskeyOwner{Handle: make([]byte, 32), Email: "ada@example.org", Name: "Ada"}
)

// keyBytes is the length of a public key. The library leaves out leading zeros, which no device does, and the key is none then.
const keyBytes = 77

// device is an authenticator with one passkey.
type device struct {
	virtual.Authenticator
	passkey virtual.Credential
}

func newDevice(change func(*virtual.AuthenticatorOptions)) *device {
	options := virtual.AuthenticatorOptions{UserHandle: ada.Handle}
	if change != nil {
		change(&options)
	}
	d := &device{Authenticator: virtual.NewAuthenticatorWithOptions(options)}
	for d.passkey.Key == nil || len(d.passkey.Key.AttestationData()) < keyBytes {
		d.passkey = virtual.NewCredential(virtual.KeyTypeEC2)
	}
	return d
}

func (d *device) registers(t *testing.T, with virtual.RelyingParty, options []byte) []byte {
	t.Helper()
	asked := check.Must(virtual.ParseAttestationOptions(string(options)))(t)
	return []byte(virtual.CreateAttestationResponse(with, d.Authenticator, d.passkey, *asked))
}

func (d *device) signs(t *testing.T, with virtual.RelyingParty, options []byte) []byte {
	t.Helper()
	d.passkey.Counter++
	asked := check.Must(virtual.ParseAssertionOptions(string(options)))(t)
	return []byte(virtual.CreateAssertionResponse(with, d.Authenticator, d.passkey, *asked))
}

func verifier(t *testing.T) *passkeys.Verifier {
	t.Helper()
	return check.Must(passkeys.New(site))(t)
}

// registered is the record of the device's passkey.
func (d *device) registered(t *testing.T, v *passkeys.Verifier) []byte {
	t.Helper()
	options, state, err := v.BeginRegistration(ada)
	check.NoError(t, err)
	credential, record, err := v.FinishRegistration(ada, state, d.registers(t, party, options))
	check.NoError(t, err)
	if string(credential) != string(d.passkey.ID) {
		t.Errorf("the credential is %x, want %x", credential, d.passkey.ID)
	}
	return record
}

// owning finds Ada with a record.
func owning(record []byte) func([]byte) (ports.PasskeyOwner, error) {
	return func([]byte) (ports.PasskeyOwner, error) {
		o := ada
		o.Records = [][]byte{record}
		return o, nil
	}
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	if !fault.Has(err, fault.Unauthorized) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAPasskeyLogsIn(t *testing.T) {
	v, phone := verifier(t), newDevice(nil)
	record := phone.registered(t, v)
	for range 2 {
		options, state, err := v.BeginLogIn()
		check.NoError(t, err)
		credential, newer, err := v.FinishLogIn(state, phone.signs(t, party, options), owning(record))
		check.NoError(t, err)
		if string(credential) != string(phone.passkey.ID) {
			t.Errorf("%x has logged in", credential)
		}
		record = newer
	}
}

// What is asked of a browser: a passkey that the device keeps, a verified user, no attestation, and none that is known.
func TestWhatABrowserIsAsked(t *testing.T) {
	v, phone := verifier(t), newDevice(nil)
	o := ada
	o.Records = [][]byte{phone.registered(t, v)}
	options, _, err := v.BeginRegistration(o)
	check.NoError(t, err)
	var asked struct {
		PublicKey struct {
			RP                     struct{ ID, Name string }
			Attestation            string
			AuthenticatorSelection struct{ ResidentKey, UserVerification string }
			ExcludeCredentials     []struct{ ID string }
		}
	}
	check.NoError(t, json.Unmarshal(options, &asked))
	k := asked.PublicKey
	device := k.AuthenticatorSelection
	if k.RP.ID != site.Host || k.RP.Name != site.Name || k.Attestation != "none" || len(k.ExcludeCredentials) != 1 ||
		device.ResidentKey != "required" || device.UserVerification != "required" {
		t.Errorf("%s", options)
	}
}

func TestWhatIsRefused(t *testing.T) {
	v, phone := verifier(t), newDevice(nil)
	record := phone.registered(t, v)
	log := func(state, response []byte) error {
		_, _, err := v.FinishLogIn(state, response, owning(record))
		return err
	}
	options, state, err := v.BeginLogIn()
	check.NoError(t, err)
	_, other, err := v.BeginLogIn()
	check.NoError(t, err)
	elsewhere := virtual.RelyingParty{ID: site.Host, Name: site.Name, Origin: "https://db.example.org.evil.example"}
	careless := *phone
	careless.Options.UserNotVerified = true
	stranger := newDevice(nil)
	for what, err := range map[string]error{
		"nothing":                 log(state, nil),
		"no response":             log(state, []byte(`{"id":"x"}`)),
		"another challenge":       log(other, phone.signs(t, party, options)),
		"another site":            log(state, phone.signs(t, elsewhere, options)),
		"a user who is unknown":   log(state, careless.signs(t, party, options)),
		"a passkey of nobody":     log(state, stranger.signs(t, party, options)),
		"registering, unverified": register(t, v, &careless, party),
		"registering elsewhere":   register(t, v, stranger, elsewhere),
	} {
		refused(t, what, err)
	}
	eve := ada
	eve.Handle = append([]byte{1}, ada.Handle[1:]...)
	eve.Records = [][]byte{record}
	_, _, err = v.FinishLogIn(state, phone.signs(t, party, options), func([]byte) (ports.PasskeyOwner, error) { return eve, nil })
	refused(t, "another person's", err)
	gone := errors.New("no such row")
	_, _, err = v.FinishLogIn(state, phone.signs(t, party, options), func([]byte) (ports.PasskeyOwner, error) {
		return ports.PasskeyOwner{}, gone
	})
	if !errors.Is(err, gone) {
		t.Errorf("the error of find became %v", err)
	}
}

func register(t *testing.T, v *passkeys.Verifier, d *device, with virtual.RelyingParty) error {
	t.Helper()
	options, state, err := v.BeginRegistration(ada)
	check.NoError(t, err)
	_, _, err = v.FinishRegistration(ada, state, d.registers(t, with, options))
	return err
}

// Whatever a browser sends, there is a refusal and no crash.
func FuzzResponses(f *testing.F) {
	for _, text := range []string{"", "{}", `{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30"}}`} {
		f.Add([]byte(text))
	}
	v, err := passkeys.New(site)
	if err != nil {
		f.Fatal(err)
	}
	_, made, err := v.BeginRegistration(ada)
	if err != nil {
		f.Fatal(err)
	}
	_, asked, err := v.BeginLogIn()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		_, _, err := v.FinishRegistration(ada, made, response)
		refused(t, "registering", err)
		_, _, err = v.FinishLogIn(asked, response, owning([]byte("{}")))
		refused(t, "logging in", err)
	})
}

func TestASiteIsChecked(t *testing.T) {
	for _, good := range []passkeys.Site{{"example.org", site.Origin, "x"}, {"localhost", "http://localhost:8443", "x"}} {
		check.Must(passkeys.New(good))(t)
	}
	for _, bad := range []passkeys.Site{
		{}, {Host: site.Host, Name: "x"}, {Origin: site.Origin, Name: "x"}, {Host: site.Host, Origin: site.Origin},
		{site.Host, "http://db.example.org", "x"}, {site.Host, "https://example.org", "x"},
		{"ample.org", "https://db.example.org", "x"},
	} {
		if _, err := passkeys.New(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
