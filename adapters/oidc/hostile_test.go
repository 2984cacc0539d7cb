package oidc

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeclock"
)

func refuses(t *testing.T, v *Verifier, token string, want citoken.Refusal, issuers ...string) {
	t.Helper()
	if _, err := v.Verify(t.Context(), token, issuers); !errors.Is(err, want) {
		t.Errorf("%.30s: %v; want %v", token, err, want)
	}
}

func accepts(t *testing.T, v *Verifier, token string, issuers ...string) {
	t.Helper()
	if _, err := v.Verify(t.Context(), token, issuers); err != nil {
		t.Error(err)
	}
}

// unsigned is a token with the algorithm none, or with any other that does not fit its signature.
func unsigned(algorithm, kid, signature string, claims map[string]any) string {
	encode := func(v any) string {
		text, _ := json.Marshal(v) // texts
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return encode(map[string]any{"alg": algorithm, "kid": kid, "typ": "JWT"}) + "." + encode(claims) + "." + signature
}

func TestAlgorithmsWithoutAPublicKeyAreRefused(t *testing.T) {
	i := start(t)
	v := local(t, fakeclock.New(), i.CA)
	claims := map[string]any{"iss": i.URL}
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256} {
		i.Rotate(algorithm)
		key, kid := i.Key()
		whole := jose.JSONWebKey{Key: key, KeyID: kid}
		public := whole.Public()
		der := check.Must(x509.MarshalPKIXPublicKey(public.Key))(t)
		jwk := check.Must(public.MarshalJSON())(t)
		for _, secret := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), jwk, make([]byte, 32)} {
			refuses(t, v, oidcissuer.Sign(secret, kid, claims), citoken.NotSigned, i.URL)
		}
		signature := i.Token(claims)
		signature = signature[strings.LastIndexByte(signature, '.')+1:]
		for _, name := range []string{"none", "None", "", "HS256", "RS1", "ES256K"} {
			refuses(t, v, unsigned(name, kid, signature, claims), citoken.NotSigned, i.URL)
			refuses(t, v, unsigned(name, kid, "", claims), citoken.NotSigned, i.URL)
		}
	}
}

// The key set of an issuer may hold a secret by mistake, or somebody else's key in the token itself.
func TestKeysAreTheIssuersPublicOnes(t *testing.T) {
	i, clock := start(t), fakeclock.New()
	v := local(t, clock, i.CA)
	claims := map[string]any{"iss": i.URL}
	stranger := start(t)
	key, _ := stranger.Key()
	_, kid := i.Key()
	refuses(t, v, oidcissuer.Sign(key, kid, claims), citoken.NotSigned, i.URL)
	refuses(t, v, oidcissuer.Sign(key, "", claims), citoken.NotSigned, i.URL)
	signer := check.Must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{EmbedJWK: true}).WithHeader("jku", stranger.URL+"/keys")))(t)
	signed := check.Must(signer.Sign(check.Must(json.Marshal(claims))(t)))(t)
	refuses(t, v, check.Must(signed.CompactSerialize())(t), citoken.NotSigned, i.URL)
	if n := stranger.AskedKeys.Load(); n != 0 {
		t.Errorf("a token has made us ask %d times elsewhere", n)
	}
	secret := make([]byte, 32)
	i.Publish(jose.JSONWebKey{Key: secret, KeyID: "secret"})
	clock.Advance(pause)
	refuses(t, v, oidcissuer.Sign(secret, "secret", claims), citoken.NotSigned, i.URL)
	refuses(t, v, signed.FullSerialize(), citoken.NotSigned, i.URL)
	accepts(t, v, i.Token(claims), i.URL)
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, i *oidcissuer.Issuer){
		"another issuer's": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["issuer"] = "https://other.example.org" })
		},
		"its own with a slash": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["issuer"] = i.URL + "/" })
		},
		"no keys": func(_ *testing.T, i *oidcissuer.Issuer) { i.Says(func(d map[string]any) { delete(d, "jwks_uri") }) },
		"keys without TLS": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["jwks_uri"] = strings.Replace(i.URL, "https:", "http:", 1) + "/keys" })
		},
		"keys in a file": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["jwks_uri"] = "file:///etc/passwd" })
		},
		"keys that are 404": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["jwks_uri"] = i.URL + "/x" })
		},
		"no JSON":  func(_ *testing.T, i *oidcissuer.Issuer) { i.Answers(says("{")) },
		"an error": func(_ *testing.T, i *oidcissuer.Issuer) { i.Answers(http.NotFound) },
		"a redirect": func(t *testing.T, i *oidcissuer.Issuer) {
			to := start(t)
			i.Answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to.URL+r.URL.Path, http.StatusFound) })
			t.Cleanup(func() {
				if to.Asked.Load() != 0 {
					t.Error("the redirect was followed")
				}
			})
		},
		"a huge one": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["more"] = strings.Repeat("x", maxDocument) })
		},
		"huge keys": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Says(func(d map[string]any) { d["jwks_uri"] = i.URL + "/endless" })
		},
		"a huge header": func(_ *testing.T, i *oidcissuer.Issuer) {
			i.Answers(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2*maxHeader)) })
		},
	} {
		i := start(t)
		change(t, i)
		refuses(t, local(t, fakeclock.New(), i.CA), i.Token(map[string]any{"iss": i.URL}), citoken.NotAsked, i.URL)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func TestAddressesAreGuarded(t *testing.T) {
	i, inner := start(t), start(t)
	token := i.Token(map[string]any{"iss": i.URL})
	strict := check.Must(New(Options{ExtraCA: i.CA, Clock: fakeclock.New()}))(t)
	refuses(t, strict, token, citoken.NotAsked, i.URL)
	if n := i.Asked.Load(); n != 0 {
		t.Errorf("an issuer at a private address was asked %d times", n)
	}
	// The issuer may be asked; where it says that its keys are may not.
	_, port, err := net.SplitHostPort(strings.TrimPrefix(inner.URL, "https://"))
	check.NoError(t, err)
	for _, host := range []string{"inner.example.com", "127.0.0.2", "[::ffff:127.0.0.2]"} {
		i.Says(func(d map[string]any) { d["jwks_uri"] = "https://" + host + ":" + port + "/keys" })
		v := check.Must(New(Options{
			Policy:  webhook.Policy{AllowPrivate: true, Refused: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}},
			ExtraCA: append(i.CA, inner.CA...), Clock: fakeclock.New(), Resolver: names{"inner.example.com": "127.0.0.2"},
		}))(t)
		refuses(t, v, token, citoken.NotAsked, i.URL)
	}
	if n := inner.AskedKeys.Load(); n != 0 {
		t.Errorf("an inner service was asked %d times", n)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	i := start(t)
	v := check.Must(New(Options{Policy: webhook.Policy{AllowPrivate: true}, Clock: fakeclock.New()}))(t)
	refuses(t, v, i.Token(map[string]any{"iss": i.URL}), citoken.NotAsked, i.URL)
	if n := i.Asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
	if _, err := New(Options{ExtraCA: []byte("x"), Clock: fakeclock.New()}); err == nil {
		t.Error("a CA file without a certificate is taken")
	}
}

// A claim of a wrong type makes a token unreadable, even where the issuer has signed it.
func TestClaimsOfWrongTypes(t *testing.T) {
	i := start(t)
	v := local(t, fakeclock.New(), i.CA)
	for claim, values := range map[string][]any{
		"jti": {1, []string{"x"}, map[string]any{}}, "nbf": {"x", true, []int{1}},
		"sub": {1}, "aud": {1, map[string]any{}}, "exp": {"x"},
	} {
		for _, value := range values {
			refuses(t, v, i.Token(map[string]any{"iss": i.URL, claim: value}), citoken.NotSigned, i.URL)
		}
	}
	for _, far := range []float64{1e18, 1e300, -1e300, -1} {
		got, err := v.Verify(t.Context(), i.Token(map[string]any{"iss": i.URL, "nbf": far}), []string{i.URL})
		if err != nil || (far > 0) != got.NotBefore.After(time.Unix(1<<39, 0)) {
			t.Errorf("%g: %v, %v", far, got.NotBefore, err)
		}
	}
}
