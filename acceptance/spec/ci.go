package spec

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
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

var trusting = []Scenario{
	{Name: "a full-account key adds, lists and removes whose tokens a namespace trusts", Play: func(s *Stage) {
		ada := s.Customer("pro")
		namespace, other := must(s.Operator.NewNamespace(ada.Account))(s), must(s.Operator.NewNamespace(ada.Account))(s)
		added := ada.Trusts(namespace, "repo:acme/shop:**")
		s.That(added.NamespaceID == namespace && added.Issuer == ciSystem && added.Audience == ciAudience &&
			added.Subject == "repo:acme/shop:**" && !added.CreatedAt.IsZero(), "it is %+v", added)
		second := ada.Trusts(namespace, "repo:acme/web:pull_request")
		ada.Trusts(other, "repo:acme/shop:**") // which is another one
		list := must(ada.CINamespaces.ListTrusts(ctx, namespace))(s)
		s.That(len(list) == 2 && slices.Contains(list, added) && slices.Contains(list, second), // in any order: of the same moment
			"the list is %+v", list)

		s.Refused(ada.CINamespaces.RemoveTrust(ctx, other, added.ID), "TRUST_NOT_FOUND")
		s.OK(ada.CINamespaces.RemoveTrust(ctx, namespace, added.ID))
		s.Refused(ada.CINamespaces.RemoveTrust(ctx, namespace, added.ID), "TRUST_NOT_FOUND")
		list = must(ada.CINamespaces.ListTrusts(ctx, namespace))(s)
		s.That(slices.Equal(list, []wire.Trust{second}), "the list is %+v", list)
		s.That(len(must(ada.CINamespaces.ListTrusts(ctx, other))(s)) == 1, "that of another namespace is gone, too")
	}},
	{Name: "namespaces are listed with the revoked ones, which trust nobody", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		s.That(len(must(ada.CINamespaces.List(ctx))(s)) == 0, "there are some")
		open, revoked := must(s.Operator.NewNamespace(ada.Account))(s), must(s.Operator.NewNamespace(ada.Account))(s)
		ada.Trusts(revoked, "repo:acme/shop:**")
		s.OK(s.Operator.RevokeNamespace(revoked))
		list := must(ada.CINamespaces.List(ctx))(s)
		if len(list) == 2 && list[0].ID == revoked { // they may be of the same moment
			slices.Reverse(list)
		}
		s.That(len(list) == 2 && list[0].ID == open && list[0].RevokedAt == nil && list[1].ID == revoked && list[1].RevokedAt != nil &&
			list[0].Name != list[1].Name, "the list is %+v", list)
		s.That(len(must(ada.CINamespaces.ListTrusts(ctx, revoked))(s)) == 0, "the revoked one trusts somebody")
		s.Refused(refusal(ada.CINamespaces.AddTrust(ctx, revoked, trustOf("repo:acme/shop:**"))), "VALIDATION_ERROR", "namespace")
		s.That(len(must(bob.CINamespaces.List(ctx))(s)) == 0, "another account sees them")
	}},
	{Name: "a trust that says too little, or too much, is refused by name, and adds nothing", Play: func(s *Stage) {
		ada := s.Customer("pro")
		namespace := must(s.Operator.NewNamespace(ada.Account))(s)
		for _, c := range []struct {
			field string
			ask   wire.AddTrust
		}{
			{"issuer", wire.AddTrust{Issuer: "http://ci.example.org", Audience: ciAudience, Subject: "repo:acme/shop:x"}},
			{"issuer", wire.AddTrust{Issuer: "https://user@ci.example.org", Audience: ciAudience, Subject: "repo:acme/shop:x"}},
			{"issuer", wire.AddTrust{Issuer: "", Audience: ciAudience, Subject: "repo:acme/shop:x"}},
			{"audience", wire.AddTrust{Issuer: ciSystem, Subject: "repo:acme/shop:x"}},
			{"audience", wire.AddTrust{Issuer: ciSystem, Audience: strings.Repeat("a", 256), Subject: "repo:acme/shop:x"}},
			{"subject", wire.AddTrust{Issuer: ciSystem, Audience: ciAudience}},
			{"subject", wire.AddTrust{Issuer: ciSystem, Audience: ciAudience, Subject: "*"}},
			{"subject", wire.AddTrust{Issuer: ciSystem, Audience: ciAudience, Subject: "repo:*"}},
			{"subject", wire.AddTrust{Issuer: ciSystem, Audience: ciAudience, Subject: "repo:acme*"}},
		} {
			s.Refused(refusal(ada.CINamespaces.AddTrust(ctx, namespace, c.ask)), "VALIDATION_ERROR", c.field)
		}
		s.That(len(must(ada.CINamespaces.ListTrusts(ctx, namespace))(s)) == 0, "one was added")
	}},
	{Name: "of the same trust there is one, and of all twenty, however many ask at once", Play: func(s *Stage) {
		ada := s.Customer("business")
		namespace := must(s.Operator.NewNamespace(ada.Account))(s)
		many := s.atOnce(6, func(i int) error {
			return refusal(ada.on(i).CINamespaces.AddTrust(ctx, namespace, trustOf("repo:acme/shop:x")))
		})
		s.oneWon(many, "subject")
		for n := len(must(ada.CINamespaces.ListTrusts(ctx, namespace))(s)); n < citoken.MaxTrusts-1; n++ {
			ada.Trusts(namespace, fmt.Sprintf("repo:acme/shop:%d", n))
		}
		many = s.atOnce(6, func(i int) error {
			return refusal(ada.on(i).CINamespaces.AddTrust(ctx, namespace, trustOf(fmt.Sprintf("repo:acme/last:%d", i))))
		})
		s.oneWon(many, "namespace")
		s.That(len(must(ada.CINamespaces.ListTrusts(ctx, namespace))(s)) == citoken.MaxTrusts, "there are more, or fewer")
	}},
	{Name: "what was added by the API makes keys, until it is removed by the API", Needs: []Ability{HasPipelines, MovesTime},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			namespace := must(s.Operator.NewNamespace(ada.Account))(s)
			trust := must(ada.CINamespaces.AddTrust(ctx, namespace, wire.AddTrust{
				Issuer: s.Pipelines.Issuer(), Audience: ciAudience, Subject: "repo:acme/shop:**",
			}))(s)
			ask := wire.ExchangeToken{NamespaceID: namespace, Token: s.token("1", "repo:acme/shop:pull_request")}
			made := must(s.Hosts[0]("").CITokens.Exchange(ctx, ask))(s)
			s.ciKeyWorks(made.APIKey)
			for _, refused := range []error{ // it adds no other one
				refusal(s.Hosts[0](made.APIKey).CINamespaces.AddTrust(ctx, namespace, trustOf("repo:evil/shop:**"))),
				refusal(s.Hosts[0](made.APIKey).CINamespaces.ListTrusts(ctx, namespace)),
			} {
				s.Refused(refused, "KEY_SCOPE_DENIED")
			}
			s.OK(ada.CINamespaces.RemoveTrust(ctx, namespace, trust.ID))
			s.keyIsOver(made.APIKey)
			ask.Token = s.token("2", "repo:acme/shop:pull_request")
			s.Refused(refusal(s.Hosts[0]("").CITokens.Exchange(ctx, ask)), "UNAUTHORIZED")
		}},
}

// ciSystem is an issuer that nobody asks.
const ciSystem = "https://ci.example.org"

// Trusts has a namespace trust tokens with some subjects.
func (c *Customer) Trusts(namespace id.NamespaceID, subject string) wire.Trust {
	c.stage.Helper()
	return must(c.CINamespaces.AddTrust(ctx, namespace, trustOf(subject)))(c.stage)
}

func trustOf(subject string) wire.AddTrust {
	return wire.AddTrust{Issuer: ciSystem, Audience: ciAudience, Subject: subject}
}

// oneWon fails the story unless one of several was done, and the others were refused for a field.
func (s *Stage) oneWon(results []error, field string) {
	s.Helper()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
			continue
		}
		s.Refused(err, "VALIDATION_ERROR", field)
	}
	s.That(won == 1, "%d of them were done", won)
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
