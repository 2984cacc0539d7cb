package conformance

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/ports"
)

// VerifierFixture is a verifier that has not asked yet, and two issuers that it can ask.
type VerifierFixture struct {
	Verifier ports.TokenVerifier
	Issuers  [2]string
	// Token is a token of the issuer that the claims name.
	Token func(c citoken.Claims) string
	// Rotate changes an issuer's key, and has so much time pass that the new one must be known.
	Rotate func(issuer string)
	Stop   func(issuer string)
	// Silence has an issuer take requests and answer none.
	Silence func(issuer string) (release func())
}

// TokenVerifier is the suite of ports.TokenVerifier.
func TokenVerifier(t *testing.T, fixture func(t *testing.T) VerifierFixture) {
	for name, run := range map[string]func(*testing.T, VerifierFixture){
		"a token of an issuer says what it says": tokenSaysAll,
		"a token that says little":               tokenSaysLittle,
		"what nobody has signed is refused":      unsignedIsRefused,
		"issuers are the caller's to name":       issuersAreNamed,
		"a new key counts, the old one does not": newKeyCounts,
		"an issuer that is gone":                 issuerIsGone,
		"a silent issuer holds up nobody else":   silentIssuer,
	} {
		t.Run(name, func(t *testing.T) { run(t, fixture(t)) })
	}
}

func claimsOf(issuer string) citoken.Claims {
	second := time.Date(2026, time.January, 5, 9, 30, 0, 0, time.UTC)
	return citoken.Claims{
		Issuer: issuer, Subject: "repo:acme/shop:ref:refs/heads/main", Audience: []string{"pgherd", "another"}, ID: "one",
		ExpiresAt: second.Add(time.Hour), NotBefore: second.Add(-time.Minute), IssuedAt: second,
	}
}

// verifies fails the test unless the token says so.
func (f VerifierFixture) verifies(t *testing.T, token string, want citoken.Claims) (signed [32]byte) {
	t.Helper()
	got, err := f.Verifier.Verify(t.Context(), token, f.Issuers[:])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(citoken.Claims{}, "Signed")); diff != "" {
		t.Error(diff)
	}
	if got.Signed == [32]byte{} {
		t.Error("nothing tells it from other tokens")
	}
	return got.Signed
}

func (f VerifierFixture) refuses(t *testing.T, token string, want citoken.Refusal, issuers ...string) {
	t.Helper()
	got, err := f.Verifier.Verify(t.Context(), token, issuers)
	if !errors.Is(err, want) || !cmp.Equal(got, citoken.Claims{}) {
		t.Errorf("%.20s: %+v, %v; want %v", token, got, err, want)
	}
}

func tokenSaysAll(t *testing.T, f VerifierFixture) {
	one := claimsOf(f.Issuers[0])
	token := f.Token(one)
	signed := f.verifies(t, token, one)
	if again := f.verifies(t, token, one); again != signed {
		t.Error("the same token is another one")
	}
	other := one
	other.ID = "two"
	if f.verifies(t, f.Token(other), other) == signed {
		t.Error("another token is the same one")
	}
	f.verifies(t, f.Token(claimsOf(f.Issuers[1])), claimsOf(f.Issuers[1]))
}

// tokenSaysLittle: times, audience and subject are the caller's to judge.
func tokenSaysLittle(t *testing.T, f VerifierFixture) {
	f.verifies(t, f.Token(citoken.Claims{Issuer: f.Issuers[0]}), citoken.Claims{Issuer: f.Issuers[0]})
	past := citoken.Claims{Issuer: f.Issuers[0], ExpiresAt: time.Unix(1, 0).UTC()}
	f.verifies(t, f.Token(past), past)
}

func unsignedIsRefused(t *testing.T, f VerifierFixture) {
	token := f.Token(claimsOf(f.Issuers[0]))
	parts := strings.Split(token, ".")
	theirs := strings.Split(f.Token(claimsOf(f.Issuers[1])), ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	forged := base64.RawURLEncoding.EncodeToString([]byte(strings.ReplaceAll(string(payload), "acme", "evil")))
	for _, text := range []string{
		"", ".", "..", "x", "a.b.c",
		token + ".", "." + token, token + " ", " " + token, token + "\n", token + "=", token[:len(token)-2],
		parts[0] + "." + parts[1] + ".", parts[0] + "." + parts[1], parts[0] + ".." + parts[2],
		parts[0] + "." + forged + "." + parts[2], parts[0] + "." + parts[1] + "." + theirs[2],
		parts[0] + "." + theirs[1] + "." + parts[2], strings.Repeat("a.", 1000) + "b", strings.Repeat("x", citoken.MaxToken),
	} {
		f.refuses(t, text, citoken.NotSigned, f.Issuers[:]...)
	}
	f.verifies(t, token, claimsOf(f.Issuers[0]))
}

func issuersAreNamed(t *testing.T, f VerifierFixture) {
	token := f.Token(claimsOf(f.Issuers[0]))
	f.refuses(t, token, citoken.NotSigned)
	f.refuses(t, token, citoken.NotSigned, f.Issuers[1])
	f.refuses(t, token, citoken.NotSigned, f.Issuers[0]+"/", strings.ToUpper(f.Issuers[0]))
}

func newKeyCounts(t *testing.T, f VerifierFixture) {
	claims := claimsOf(f.Issuers[0])
	old := f.Token(claims)
	f.verifies(t, old, claims)
	f.Rotate(f.Issuers[0])
	f.verifies(t, f.Token(claims), claims)
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if _, err := f.Verifier.Verify(t.Context(), old, f.Issuers[:]); err != nil {
			break // whoever got the new key may be a moment ahead of the others
		}
	}
	f.refuses(t, old, citoken.NotSigned, f.Issuers[:]...)
}

func issuerIsGone(t *testing.T, f VerifierFixture) {
	token := f.Token(claimsOf(f.Issuers[0]))
	f.Stop(f.Issuers[0])
	f.refuses(t, token, citoken.NotAsked, f.Issuers[:]...)
	f.refuses(t, token, citoken.NotAsked, f.Issuers[:]...)
	f.verifies(t, f.Token(claimsOf(f.Issuers[1])), claimsOf(f.Issuers[1]))
}

func silentIssuer(t *testing.T, f VerifierFixture) {
	release := f.Silence(f.Issuers[0])
	token := f.Token(claimsOf(f.Issuers[0]))
	ctx, leave := context.WithCancel(t.Context())
	const waiting = 20
	left := make(chan error, waiting)
	for range waiting {
		go func() {
			_, err := f.Verifier.Verify(ctx, token, f.Issuers[:])
			left <- err
		}()
	}
	f.verifies(t, f.Token(claimsOf(f.Issuers[1])), claimsOf(f.Issuers[1]))
	leave()
	for range waiting {
		if err := <-left; err == nil {
			t.Error("the silent issuer has answered")
		}
	}
	release()
}
