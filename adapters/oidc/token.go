package oidc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/pgherd/pgherd/core/citoken"
)

// presented is a token whose signature nobody has checked.
type presented struct {
	issuer string
	signed [32]byte
}

// open reads which issuer a token names. It takes the compact form alone, in the one way to write it: in another form the same
// signed words would be another text, and pass for another token.
func open(token string) (presented, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || strings.ContainsAny(token, "\r\n") { // which base64 passes over
		return presented{}, citoken.NotSigned
	}
	var payload []byte
	for i, part := range parts {
		content, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || len(content) == 0 {
			return presented{}, citoken.NotSigned
		}
		if i == 1 {
			payload = content
		}
	}
	var says struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &says); err != nil {
		return presented{}, citoken.NotSigned
	}
	signed := token[:strings.LastIndexByte(token, '.')]
	return presented{issuer: says.Issuer, signed: sha256.Sum256([]byte(signed))}, nil
}

// claims is what a token says whose signature was checked.
func (p presented) claims(t *oidc.IDToken) (citoken.Claims, error) {
	var more struct {
		ID        string   `json:"jti"`
		NotBefore *float64 `json:"nbf"`
	}
	if err := t.Claims(&more); err != nil {
		return citoken.Claims{}, citoken.NotSigned
	}
	c := citoken.Claims{
		Issuer: t.Issuer, Subject: t.Subject, Audience: t.Audience, ExpiresAt: utc(t.Expiry), IssuedAt: utc(t.IssuedAt),
		ID: more.ID, Signed: p.signed,
	}
	if more.NotBefore != nil {
		c.NotBefore = seconds(*more.NotBefore)
	}
	return c, nil
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// seconds is a time in seconds since 1970. One that no clock shows is far ahead.
func seconds(n float64) time.Time {
	const most = 1 << 40
	return time.Unix(int64(max(0, min(n, most))), 0).UTC()
}
