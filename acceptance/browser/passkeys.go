package browser

import "github.com/chromedp/cdproto/webauthn"

// Passkeys is a device that keeps passkeys, such as a phone with a fingerprint reader. It belongs to one page.
type Passkeys struct {
	p  *Page
	id webauthn.AuthenticatorID
}

// Passkeys gives the page such a device, whose owner always puts their finger on it.
func (p *Page) Passkeys() *Passkeys {
	p.t.Helper()
	call(p, webauthn.Enable, webauthn.EnableParams{})
	added := call(p, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	})
	return &Passkeys{p, added.AuthenticatorID}
}

// Verify says whether the finger is its owner's from now on.
func (k *Passkeys) Verify(owner bool) {
	k.p.t.Helper()
	call(k.p, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: k.id, IsUserVerified: owner})
}

// Count is how many passkeys the device keeps.
func (k *Passkeys) Count() int {
	k.p.t.Helper()
	return len(call(k.p, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: k.id}).Credentials)
}

// Lose takes the device away, with what it keeps.
func (k *Passkeys) Lose() {
	k.p.t.Helper()
	call(k.p, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: k.id})
}
