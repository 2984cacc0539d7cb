package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// trusting takes every signature for the issuer's.
type trusting struct{}

func (trusting) VerifySignature(_ context.Context, token string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
}

// Whatever comes in the place of a token, it is refused, or is the one way to write what it says; and the issuer whose keys are
// asked for is the one that the library reads in it, though several names may look like that of the claim.
func FuzzToken(f *testing.F) {
	sign := func(claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"ES256","kid":"a"}`)) + "." + encode([]byte(claims)) + "." + encode(make([]byte, 64))
	}
	for _, claims := range []string{
		`{"iss":"https://ci.example.com","sub":"s","aud":"a","exp":1772539200,"iat":1772539100,"nbf":1772539100.5,"jti":"j"}`,
		`{"iss":"https://ci.example.com","iss":"https://evil.example.com","ISS":"https://evil.example.com"}`,
		`{"iss":7}`, `{}`, `null`, `[]`, `{"iss":"a","aud":["a",7]}`, `{"iss":"a","exp":1e300,"nbf":-1e300}`, `{"iss":"a","exp":"1"}`,
		`{"iss":"\ud800","_claim_names":{"x":"y"}}`,
		`{"iss":"a"} {}`,
	} {
		f.Add(sign(claims))
	}
	f.Add("a.b.c")
	f.Add(sign("{}") + "=")
	f.Add(strings.Replace(sign("{}"), ".", "\n.", 1))
	f.Fuzz(func(t *testing.T, token string) {
		p, err := open(token)
		if err != nil {
			return
		}
		for part := range strings.SplitSeq(token, ".") {
			if raw, err := base64.RawURLEncoding.DecodeString(part); err != nil || base64.RawURLEncoding.EncodeToString(raw) != part {
				t.Fatalf("%q has other ways to be written", token)
			}
		}
		c, err := verify(t.Context(), token, p, trusting{})
		if err != nil {
			return
		}
		var says map[string]json.RawMessage
		payload := check.Must(trusting{}.VerifySignature(t.Context(), token))(t)
		check.NoError(t, json.Unmarshal(payload, &says))
		if c.Issuer != p.issuer || c.NotBefore.Year() > 9999 && says["nbf"] == nil {
			t.Errorf("%s is %+v, of %q", payload, c, p.issuer)
		}
	})
}
