package fakeissuer_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/fakes/fakeissuer"
)

func TestConformance(t *testing.T) {
	conformance.TokenVerifier(t, func(*testing.T) conformance.VerifierFixture {
		i := fakeissuer.New()
		return conformance.VerifierFixture{
			Verifier: i, Issuers: [2]string{"https://one.example.org", "https://two.example.org"}, Token: i.Token, Rotate: i.Rotate,
			Stop: i.Stop, Silence: i.Silence,
		}
	})
}
