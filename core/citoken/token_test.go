package citoken

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

const (
	issuer   = "https://ci.example.org"
	audience = "https://pgherd.example.org"
)

var now = time.Date(2026, time.January, 5, 9, 30, 0, 0, time.UTC)

func trusts(t *testing.T) []Trust {
	t.Helper()
	var list []Trust
	for _, of := range [][3]string{
		{issuer, audience, "repo:acme/shop:**"}, {issuer, "another", "repo:acme/*:pull_request"},
		{"https://other.example.org", audience, "repo:acme/other:x"},
	} {
		trust, err := NewTrust(of[0], of[1], of[2])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, trust)
	}
	return list
}

func good() Claims {
	return Claims{
		Issuer: issuer, Subject: "repo:acme/shop:pull_request", Audience: []string{audience}, ExpiresAt: now.Add(10 * time.Minute),
		NotBefore: now, IssuedAt: now, ID: "1",
	}
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Claims)
		want   error
	}{
		"good":                     {func(*Claims) {}, nil},
		"says only what it must":   {func(c *Claims) { c.NotBefore, c.IssuedAt, c.ID = time.Time{}, time.Time{}, "" }, nil},
		"ends now":                 {func(c *Claims) { c.ExpiresAt = now }, NotNow},
		"never ends":               {func(c *Claims) { c.ExpiresAt = time.Time{} }, NotNow},
		"lasts a day":              {func(c *Claims) { c.ExpiresAt = now.Add(24 * time.Hour) }, nil},
		"lasts longer":             {func(c *Claims) { c.ExpiresAt = now.Add(24*time.Hour + 1) }, NotNow},
		"begins within the skew":   {func(c *Claims) { c.NotBefore, c.IssuedAt = now.Add(time.Minute), now.Add(time.Minute) }, nil},
		"begins later":             {func(c *Claims) { c.NotBefore = now.Add(time.Minute + 1) }, NotNow},
		"is issued later":          {func(c *Claims) { c.IssuedAt = now.Add(time.Minute + 1) }, NotNow},
		"is for nobody":            {func(c *Claims) { c.Audience = nil }, NotFor},
		"is for another":           {func(c *Claims) { c.Audience = []string{"x"} }, NotFor},
		"is for several":           {func(c *Claims) { c.Audience = []string{audience, "x"} }, NotFor},
		"is for another of ours":   {func(c *Claims) { c.Audience = []string{"another"} }, nil},
		"is of another issuer":     {func(c *Claims) { c.Issuer += "/" }, NotFor},
		"has another's subject":    {func(c *Claims) { c.Subject = "repo:evil/shop:pull_request" }, NotMatched},
		"has a subject of another": {func(c *Claims) { c.Subject = "repo:acme/other:x" }, NotMatched},
		"has no subject":           {func(c *Claims) { c.Subject = "" }, NotMatched},
		"has a subject of lines":   {func(c *Claims) { c.Subject = "repo:acme/shop:a\nb" }, NotMatched},
		"has a long subject":       {func(c *Claims) { c.Subject = "repo:acme/shop:" + strings.Repeat("x", 241) }, NotMatched},
	} {
		claims := good()
		c.change(&claims)
		trust, err := Decide(trusts(t), claims, now)
		if err != c.want || (err == nil) != (trust.Issuer == claims.Issuer) {
			t.Errorf("a token that %s: %+v, %v", name, trust, err)
		}
	}
	if _, err := Decide(nil, good(), now); err != NotFor {
		t.Errorf("without trusts: %v", err)
	}
}

func TestSpentTellsTokensApart(t *testing.T) {
	one := good()
	mark := func(change func(*Claims)) []byte {
		c := one
		change(&c)
		return c.Spent().Mark
	}
	for name, c := range map[string]struct {
		change func(*Claims)
		same   bool
	}{
		"the same again":             {func(*Claims) {}, true},
		"the same ID, another text":  {func(c *Claims) { c.Signed[0]++; c.Subject = "x" }, true},
		"another ID":                 {func(c *Claims) { c.ID = "2" }, false},
		"the ID of another issuer":   {func(c *Claims) { c.Issuer = "https://other.example.org" }, false},
		"no ID":                      {func(c *Claims) { c.ID = "" }, false},
		"an ID that is the digest's": {func(c *Claims) { c.ID = string(c.Signed[:]) }, false},
	} {
		if same := bytes.Equal(mark(c.change), one.Spent().Mark); same != c.same {
			t.Errorf("%s: the same is %t", name, same)
		}
	}
	one.ID = ""
	if bytes.Equal(one.Spent().Mark, mark(func(c *Claims) { c.Signed[0]++ })) {
		t.Error("without IDs, two tokens are one")
	}
	if until := one.Spent().Until; !until.After(one.ExpiresAt) {
		t.Errorf("it is forgotten at %s, and valid until %s", until, one.ExpiresAt)
	}
}

func TestTrustsAreChecked(t *testing.T) {
	const pattern = "repo:acme/shop:**"
	for field, bad := range map[string][][3]string{
		"issuer": {
			{"", audience, pattern}, {"http://ci.example.org", audience, pattern}, {"ci.example.org", audience, pattern},
			{"https://", audience, pattern}, {"https://u:p@ci.example.org", audience, pattern}, {issuer + "?x", audience, pattern},
			{issuer + "?", audience, pattern}, {issuer + "#x", audience, pattern}, {issuer + "/é", audience, pattern},
			{"https://2130706433", audience, pattern}, {issuer + "/" + strings.Repeat("x", 255), audience, pattern},
		},
		"audience": {{issuer, "", pattern}, {issuer, "é", pattern}, {issuer, strings.Repeat("x", 256), pattern}},
		"subject":  {{issuer, audience, "*"}},
	} {
		for _, v := range bad {
			if _, err := NewTrust(v[0], v[1], v[2]); err == nil || !strings.HasPrefix(err.Error(), "VALIDATION_ERROR: "+field+":") {
				t.Errorf("%q: %v", v, err)
			}
		}
	}
	for _, one := range []string{
		issuer, issuer + "/", "https://ci.example.org:8443/a/b", "https://127.0.0.1:1234", "https://localhost",
	} {
		if trust, err := NewTrust(one, audience, pattern); err != nil || trust.Issuer != one {
			t.Errorf("%s: %+v, %v", one, trust, err)
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	for text, ok := range map[string]bool{
		"": false, "x": true, strings.Repeat("x", MaxToken): true, strings.Repeat("x", MaxToken+1): false, "a\nb": false, "é": false,
	} {
		if err := CheckText(text); (err == nil) != ok || err != nil && !fault.Has(err, fault.ValidationError) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}

func TestLiveKeysAreBounded(t *testing.T) {
	end := now.Add(5 * time.Minute)
	if err := (Live{MaxLive - 1, &end}).Admit(now); err != nil {
		t.Error(err)
	}
	err := (Live{MaxLive, &end}).Admit(now)
	if e, ok := err.(*fault.Error); !ok || e.Code != fault.RateLimited || e.RetryAfter != 5*time.Minute {
		t.Errorf("%+v", err)
	}
}
