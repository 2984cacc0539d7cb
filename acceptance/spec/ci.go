package spec

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
)

// CIOperator is the operator where pipelines are concerned.
type CIOperator interface {
	NewNamespace(a Account) (id.NamespaceID, error)
	// RevokeNamespace ends all keys and trusts of a namespace.
	RevokeNamespace(n id.NamespaceID) error
	NewCIKeyOf(n id.NamespaceID) (Key, error)
	RevokeCIKey(k Key) error
	// AddTrust lets tokens be exchanged for keys of a namespace.
	AddTrust(n id.NamespaceID, issuer, audience, subject string) (id.TrustID, error)
	RemoveTrust(t id.TrustID) error
}

// Pipelines run on a CI system, whose issuer signs tokens for them.
type Pipelines interface {
	Issuer() string
	Token(c citoken.Claims) string
}

var keepingCIKeys = []Scenario{
	{Name: "a revoked CI key stops working at once, another one of its namespace does not", Play: func(s *Stage) {
		namespace := must(s.Operator.NewNamespace(s.Customer("pro").Account))(s)
		gone, kept := must(s.Operator.NewCIKeyOf(namespace))(s), must(s.Operator.NewCIKeyOf(namespace))(s)
		s.ciKeyWorks(gone.Text)
		s.OK(s.Operator.RevokeCIKey(gone))
		s.keyIsOver(gone.Text)
		s.ciKeyWorks(kept.Text)
		s.That(s.Operator.RevokeCIKey(gone) != nil, "a revoked key is revoked again")
		s.That(s.Operator.RevokeKey(kept) != nil, "a CI key is revoked as a key of an account")
	}},
	{Name: "a revoked namespace ends its keys at once, and has no new ones", Play: func(s *Stage) {
		ada := s.Customer("pro")
		namespace, other := must(s.Operator.NewNamespace(ada.Account))(s), must(s.Operator.NewNamespace(ada.Account))(s)
		gone, kept := must(s.Operator.NewCIKeyOf(namespace))(s), must(s.Operator.NewCIKeyOf(other))(s)
		s.ciKeyWorks(gone.Text)
		s.OK(s.Operator.RevokeNamespace(namespace))
		s.keyIsOver(gone.Text)
		s.ciKeyWorks(kept.Text)
		s.That(refusal(s.Operator.NewCIKeyOf(namespace)) != nil, "a revoked namespace has a new key")
		s.That(refusal(s.Operator.AddTrust(namespace, "https://ci.example.org", "x", "repo:acme/shop:x")) != nil,
			"a revoked namespace has a new trust")
		ada.SeesAll()
	}},
}

// ciKeyWorks fails the story where a CI key is not taken for one by some host.
func (s *Stage) ciKeyWorks(key string) {
	s.Helper()
	for _, host := range s.Hosts {
		s.Refused(refusal(host(key).Databases.List().Page(ctx, apiclient.Page{})), "KEY_SCOPE_DENIED")
	}
}

// keyIsOver fails the story where some host takes a key.
func (s *Stage) keyIsOver(key string) {
	s.Helper()
	for _, host := range s.Hosts {
		s.Refused(refusal(host(key).Databases.List().Page(ctx, apiclient.Page{})), "UNAUTHORIZED")
	}
}

const ciAudience = "https://pgherd.example.org"

var exchanging = []Scenario{
	{Name: "what is refused gets the same bytes, whatever the cause", Play: func(s *Stage) {
		ada := s.Customer("pro")
		trusting, bare := must(s.Operator.NewNamespace(ada.Account))(s), must(s.Operator.NewNamespace(ada.Account))(s)
		revoked := must(s.Operator.NewNamespace(ada.Account))(s)
		for _, n := range []id.NamespaceID{trusting, revoked} {
			must(s.Operator.AddTrust(n, "https://ci.invalid", ciAudience, "repo:acme/shop:**"))(s)
		}
		s.OK(s.Operator.RevokeNamespace(revoked))
		var first Answer
		for i, ask := range []wire.ExchangeToken{
			{NamespaceID: trusting, Token: "x"}, {NamespaceID: trusting, Token: strings.Repeat("x", citoken.MaxToken)},
			{NamespaceID: trusting, Token: unsignedToken("https://other.invalid")},
			{NamespaceID: trusting, Token: unsignedToken("https://ci.invalid")},
			{NamespaceID: bare, Token: "x"}, {NamespaceID: revoked, Token: "x"}, {NamespaceID: nobodysID, Token: "x"},
		} {
			answer := s.sends(exchange(ask, s.someAddress()))
			s.Refused(answer.refusal(), "UNAUTHORIZED")
			if i == 0 {
				first = answer
			}
			s.That(bytes.Equal(answer.Body, first.Body) && answer.Header.Get("Cache-Control") == "no-store", "%d %v %s",
				answer.Status, answer.Header, answer.Body)
		}
	}},
	{Name: "a malformed exchange names the field", Play: func(s *Stage) {
		namespace := must(s.Operator.NewNamespace(s.Customer("pro").Account))(s)
		for body, field := range map[string]string{
			fmt.Sprintf(`{"namespaceId":%q}`, namespace):                "token",
			fmt.Sprintf(`{"namespaceId":%q,"token":""}`, namespace):     "token",
			fmt.Sprintf(`{"namespaceId":%q,"token":1}`, namespace):      "token",
			fmt.Sprintf(`{"namespaceId":%q,"token":"a\nb"}`, namespace): "token",
			`{"token":"x"}`:                   "namespaceId",
			`{"namespaceId":"x","token":"x"}`: "namespaceId",
			fmt.Sprintf(`{"namespaceId":%q,"token":"x","scope":"x"}`, namespace): "scope",
		} {
			request := exchange(wire.ExchangeToken{}, s.someAddress())
			request.Body = []byte(body)
			s.Refused(s.sends(request).refusal(), "VALIDATION_ERROR", field)
		}
		long := wire.ExchangeToken{NamespaceID: namespace, Token: strings.Repeat("x", citoken.MaxToken+1)}
		s.Refused(s.sends(exchange(long, s.someAddress())).refusal(), "VALIDATION_ERROR", "token")
	}},
	{Name: "exchanges are limited by client address and namespace", Play: func(s *Stage) {
		ask := wire.ExchangeToken{NamespaceID: nobodysID, Token: "x"}
		stranger := s.someAddress()
		answer := s.sends(exchange(ask, stranger))
		s.That(answer.number(s, "X-RateLimit-Limit") > 0, "the headers are %v", answer.Header)
		for n := 0; answer.Status == 401 && n < 100; n++ {
			answer = s.sends(exchange(ask, stranger))
		}
		s.Refused(answer.refusal(), "RATE_LIMITED")
		s.That(answer.number(s, "Retry-After") > 0, "the headers are %v", answer.Header)
		s.That(s.sends(exchange(ask, s.someAddress())).Status == 401, "another address is turned away, too")
		ask.NamespaceID = must(s.Operator.NewNamespace(s.Customer("pro").Account))(s)
		s.That(s.sends(exchange(ask, stranger)).Status == 401, "another namespace is turned away, too")
	}},
	{Name: "a pipeline gets a key for an hour, once for a token", Needs: []Ability{HasPipelines, MovesTime}, Play: func(s *Stage) {
		namespace := must(s.Operator.NewNamespace(s.Customer("pro").Account))(s)
		must(s.Operator.AddTrust(namespace, s.Pipelines.Issuer(), ciAudience, "repo:acme/shop:**"))(s)
		ask := wire.ExchangeToken{NamespaceID: namespace, Token: s.token("1", "repo:acme/shop:pull_request")}
		var made wire.ExchangedKey
		won := 0
		results := make([]wire.ExchangedKey, 8)
		for i, err := range s.atOnce(len(results), func(i int) (err error) {
			results[i], err = s.Hosts[i%len(s.Hosts)]("").CITokens.Exchange(ctx, ask)
			return err
		}) {
			if err == nil {
				won, made = won+1, results[i]
				continue
			}
			s.Refused(err, "UNAUTHORIZED")
		}
		s.That(won == 1 && made.NamespaceID == namespace && made.ExpiresAt.Equal(s.Clock.Now().Add(time.Hour)),
			"%d keys; %s until %s", won, made.NamespaceID, made.ExpiresAt)
		s.ciKeyWorks(made.APIKey)
		other := wire.ExchangeToken{NamespaceID: namespace, Token: s.token("2", "repo:evil/shop:pull_request")}
		s.Refused(refusal(s.Hosts[0]("").CITokens.Exchange(ctx, other)), "UNAUTHORIZED")
		s.OK(s.Clock.Advance(time.Hour))
		s.keyIsOver(made.APIKey)
	}},
	{Name: "a removed trust ends the keys that were made by it", Needs: []Ability{HasPipelines, MovesTime}, Play: func(s *Stage) {
		namespace := must(s.Operator.NewNamespace(s.Customer("pro").Account))(s)
		trust := must(s.Operator.AddTrust(namespace, s.Pipelines.Issuer(), ciAudience, "repo:acme/shop:**"))(s)
		ask := wire.ExchangeToken{NamespaceID: namespace, Token: s.token("1", "repo:acme/shop:pull_request")}
		made := must(s.Hosts[0]("").CITokens.Exchange(ctx, ask))(s)
		stored := must(s.Operator.NewCIKeyOf(namespace))(s)
		s.ciKeyWorks(made.APIKey)
		s.OK(s.Operator.RemoveTrust(trust))
		s.keyIsOver(made.APIKey)
		s.ciKeyWorks(stored.Text)
		ask.Token = s.token("2", "repo:acme/shop:pull_request")
		s.Refused(refusal(s.Hosts[0]("").CITokens.Exchange(ctx, ask)), "UNAUTHORIZED")
	}},
}

// token is one that a pipeline has for us, for ten minutes.
func (s *Stage) token(name, subject string) string {
	now := s.Clock.Now()
	return s.Pipelines.Token(citoken.Claims{
		Issuer: s.Pipelines.Issuer(), Subject: subject, Audience: []string{ciAudience}, ID: name, IssuedAt: now,
		ExpiresAt: now.Add(10 * time.Minute),
	})
}

// unsignedToken names an issuer, and has the shape of a token.
func unsignedToken(issuer string) string {
	return base64URL(`{"alg":"RS256","kid":"x"}`) + "." + base64URL(fmt.Sprintf(`{"iss":%q}`, issuer)) + "." + base64URL("x")
}

func exchange(ask wire.ExchangeToken, from string) Request {
	return Request{Method: "POST", Path: "/api/v1/previews/token", From: from, Header: jsonHeader,
		Body: fmt.Appendf(nil, `{"namespaceId":%q,"token":%q}`, ask.NamespaceID, ask.Token)}
}

func base64URL(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
