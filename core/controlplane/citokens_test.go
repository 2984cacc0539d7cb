package controlplane_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

const (
	ciIssuer   = "https://ci.example.org"
	ciAudience = "https://pgherd.example.org"
	ciSubject  = "repo:acme/shop:ref:refs/heads/main"
)

// trusting is a world with a namespace that trusts a pipeline.
type trusting struct {
	*world
	namespace account.Namespace
	trust     citoken.Trust
	tokens    int
	from      netip.Addr // the pipeline's address
}

func newTrusting(t *testing.T) *trusting {
	w := &trusting{world: newWorld(t)}
	w.namespace = must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "pipeline"))(t)
	w.trust = must(w.Operator.AddTrust(w.ctx, keys.NewTrust{
		NamespaceID: w.namespace.ID, Issuer: ciIssuer, Audience: ciAudience, Subject: "repo:acme/shop:**",
	}))(t)
	w.clock.Advance(time.Second) // what is logged from now on is newer
	return w
}

// claims are those of a good token, each time another one.
func (w *trusting) claims(change ...func(*citoken.Claims)) citoken.Claims {
	w.tokens++
	now := w.clock.Now()
	c := citoken.Claims{
		Issuer: ciIssuer, Subject: ciSubject, Audience: []string{ciAudience}, ExpiresAt: now.Add(10 * time.Minute), IssuedAt: now,
		ID: fmt.Sprint(w.tokens),
	}
	for _, by := range change {
		by(&c)
	}
	return c
}

func (w *trusting) token(change ...func(*citoken.Claims)) string {
	return w.issuers.Token(w.claims(change...))
}

func (w *trusting) exchange(n id.NamespaceID, token string) (citokens.Exchanged, error) {
	return w.CITokens.Exchange(w.ctx, citokens.Presented{NamespaceID: string(n), Token: token, Client: w.from, RequestID: "request"})
}

func (w *trusting) exchanged() citokens.Exchanged {
	w.t.Helper()
	return must(w.exchange(w.namespace.ID, w.token()))(w.t)
}

// sameRefusal fails the test unless an error is the one that every refused token gets.
func sameRefusal(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || err.Error() != citoken.ErrRefused().Error() || !fault.Has(err, fault.Unauthorized) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestATokenIsExchangedForAKeyOfAnHour(t *testing.T) {
	w := newTrusting(t)
	made := w.exchanged()
	c := w.admit(made.Text)
	if c.Key.Kind != account.CIKey || c.Key.NamespaceID != w.namespace.ID || c.Key.UserID != w.account.OwnerID ||
		c.Key.TrustID != w.trust.ID || c.Account.ID != w.account.ID {
		t.Errorf("%+v", c.Key)
	}
	equal(t, "the end", *made.Key.ExpiresAt, w.clock.Now().Add(time.Hour))
	equal(t, "the actor", c.Actor().Name, "key:"+made.Key.Prefix()+" for "+ciSubject+" of "+ciIssuer)
	equal(t, "the person", c.Actor().UserID, w.account.OwnerID)
	refused(t, c.RequireFullAccount(), fault.KeyScopeDenied)
	db := w.made("shop").Record.ID
	refused(t, errOf(w.Access.Reach(w.ctx, c, db, account.See)), fault.DatabaseNotFound)

	w.clock.Advance(time.Hour - time.Microsecond)
	w.admit(made.Text)
	w.clock.Advance(time.Microsecond)
	if _, err := w.Access.Admit(w.ctx, attempt(made.Text)); err == nil || err.Error() != account.ErrUnauthorized().Error() {
		t.Errorf("after an hour: %v", err)
	}
	refused(t, w.Operator.RevokeCIKey(w.ctx, made.Key.ID), fault.ValidationError)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "keys after an hour", len(must(w.Operator.CIKeys(w.ctx, w.namespace.ID))(t)), 1)
	w.clock.Advance(citoken.KeptFor + time.Microsecond)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "keys after a day", len(must(w.Operator.CIKeys(w.ctx, w.namespace.ID))(t)), 0)
}

// An address that has tried too many wrong keys lets in only those that were valid lately: an expired one is not.
func TestAnExpiredKeyIsNotRememberedAsValid(t *testing.T) {
	w := newTrusting(t)
	made := w.exchanged()
	w.admit(made.Text)
	w.clock.Advance(time.Hour)
	wrong := attempt("wrong")
	for range 30 {
		refused(t, errOf(w.Access.Admit(w.ctx, wrong)), fault.Unauthorized)
	}
	refused(t, errOf(w.Access.Admit(w.ctx, attempt(made.Text))), fault.RateLimited)
	other := attempt(made.Text)
	other.Client = netip.MustParseAddr("198.51.100.9")
	refused(t, errOf(w.Access.Admit(w.ctx, other)), fault.Unauthorized)
}

func TestTheLogNamesThePipeline(t *testing.T) {
	w := newTrusting(t)
	made := w.exchanged()
	log := must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t)
	others := map[audit.Action]bool{}
	for _, e := range log[1:] {
		others[e.What.Action] = true
	}
	if len(others) != 4 || log[0].What.Action != audit.CIKeyExchanged || !others[audit.CITrustAdded] ||
		!others[audit.NamespaceCreated] || !others[audit.AccountCreated] || !others[audit.KeyCreated] {
		t.Fatalf("%+v", log)
	}
	e := log[0].What
	if e.Details["issuer"] != ciIssuer || e.Details["subject"] != ciSubject || e.Details["trustId"] != string(w.trust.ID) ||
		!strings.HasPrefix(e.Actor.Name, "key:"+made.Key.Prefix()+" for ") || log[0].Person.ID != w.account.OwnerID {
		t.Errorf("%+v", e)
	}
	equal(t, "who added the trust", log[1].What.Actor, audit.Operator)
	_, err := w.Operator.AccountAudit(w.ctx, "none", ports.Page{})
	refused(t, err, fault.ValidationError)
}

func TestEveryRefusedTokenGetsTheSameAnswer(t *testing.T) {
	w := newTrusting(t)
	revoked := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "revoked"))(t)
	must(w.Operator.AddTrust(w.ctx, keys.NewTrust{
		NamespaceID: revoked.ID, Issuer: ciIssuer, Audience: ciAudience, Subject: ciSubject,
	}))(t)
	ok(t, w.Operator.RevokeNamespace(w.ctx, revoked.ID))
	untrusting := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "untrusting"))(t)
	const nowhere id.NamespaceID = "00000000-0000-4000-8000-000000000000"
	own, good := w.namespace.ID, w.token()
	now := w.clock.Now()
	for what, c := range map[string]struct {
		namespace id.NamespaceID
		token     string
	}{
		"no such namespace":   {nowhere, good},
		"a revoked namespace": {revoked.ID, good},
		"one without trusts":  {untrusting.ID, good},
		"no token":            {own, "x"},
		"a longest token":     {own, strings.Repeat("x", citoken.MaxToken)},
		"another's signature": {own, good + "A"},
		"another subject":     {own, w.token(func(c *citoken.Claims) { c.Subject = "repo:evil/shop:pull_request" })},
		"an expired token":    {own, w.token(func(c *citoken.Claims) { c.ExpiresAt = now })},
	} {
		sameRefusal(t, what, errOf(w.exchange(c.namespace, c.token)))
	}
	must(w.exchange(own, good))(t)
	sameRefusal(t, "a token again", errOf(w.exchange(own, good)))
	w.issuers.Stop(ciIssuer)
	sameRefusal(t, "an issuer that is down", errOf(w.exchange(own, w.token())))
	bare := *w.world
	bare.ports.Tokens = nil
	cp := bare.process(quick())
	_, err := cp.CITokens.Exchange(w.ctx, citokens.Presented{NamespaceID: string(own), Token: w.token()})
	sameRefusal(t, "an installation that takes no tokens", err)
}

func TestMalformedExchanges(t *testing.T) {
	w := newTrusting(t)
	for field, p := range map[string]citokens.Presented{
		"namespaceId": {NamespaceID: strings.ToUpper(string(w.namespace.ID)), Token: w.token()},
		"token":       {NamespaceID: string(w.namespace.ID), Token: strings.Repeat("x", citoken.MaxToken+1)},
	} {
		_, err := w.CITokens.Exchange(w.ctx, p)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Code != fault.ValidationError || refusal.Details[0].Field != field ||
			strings.Contains(refusal.Message, "xxx") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestTheJournalSaysWhyAndQuotesNothing(t *testing.T) {
	w := newTrusting(t)
	told := &spy{}
	w.ports.Journal = told
	w.ControlPlane = w.process(quick())
	sameRefusal(t, "another subject", errOf(w.exchange(w.namespace.ID, w.token(func(c *citoken.Claims) {
		c.Subject = "repo:evil/shop:pull_request"
	}))))
	if len(told.events) != 1 {
		t.Fatalf("%+v", told.events)
	}
	e := told.events[0]
	if e.What != "ci_token.refused" || e.NamespaceID != w.namespace.ID || e.RequestID != "request" ||
		!errors.Is(e.Err, citoken.NotMatched) || strings.Contains(fmt.Sprintf("%+v", e), "evil") {
		t.Errorf("%+v", e)
	}
}

func TestATokenWorksOnce(t *testing.T) {
	w := newTrusting(t)
	token := w.token()
	hosts := []*world{w.world, {ControlPlane: w.process(quick())}}
	var won atomic.Int64
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			_, err := hosts[n%2].CITokens.Exchange(w.ctx, citokens.Presented{NamespaceID: string(w.namespace.ID), Token: token})
			if err == nil {
				won.Add(1)
				return
			}
			sameRefusal(t, "a token again", err)
		})
	}
	all.Wait()
	equal(t, "keys", won.Load(), int64(1))
	equal(t, "keys of the namespace", len(must(w.Operator.CIKeys(w.ctx, w.namespace.ID))(t)), 1)
	// In another namespace it is as spent; and it is remembered until nothing takes it any more.
	other := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "other"))(t)
	must(w.Operator.AddTrust(w.ctx, keys.NewTrust{
		NamespaceID: other.ID, Issuer: ciIssuer, Audience: ciAudience, Subject: ciSubject,
	}))(t)
	sameRefusal(t, "in another namespace", errOf(w.exchange(other.ID, token)))
	for range 10 {
		w.clock.Advance(59 * time.Second)
		ok(t, w.Rounds.Once(w.ctx))
		sameRefusal(t, "a token again, later", errOf(w.exchange(w.namespace.ID, token)))
	}
}

func TestARevokedNamespaceIsOver(t *testing.T) {
	w := newTrusting(t)
	_, stored, err := w.Operator.CreateCIKey(w.ctx, w.namespace.ID)
	ok(t, err)
	made, token := w.exchanged(), w.token()
	w.admit(stored)
	w.admit(made.Text)
	ok(t, w.Operator.RevokeNamespace(w.ctx, w.namespace.ID))
	for _, key := range []string{stored, made.Text} {
		if _, err := w.Access.Admit(w.ctx, attempt(key)); err == nil || err.Error() != account.ErrUnauthorized().Error() {
			t.Errorf("a key of a revoked namespace: %v", err)
		}
	}
	sameRefusal(t, "a token", errOf(w.exchange(w.namespace.ID, token)))
	_, _, err = w.Operator.CreateCIKey(w.ctx, w.namespace.ID)
	refused(t, err, fault.ValidationError)
	refused(t, errOf(w.Operator.AddTrust(w.ctx, keys.NewTrust{
		NamespaceID: w.namespace.ID, Issuer: ciIssuer, Audience: "x", Subject: ciSubject,
	})), fault.ValidationError)
	refused(t, w.Operator.RevokeNamespace(w.ctx, w.namespace.ID), fault.ValidationError)
	refused(t, w.Operator.RevokeNamespace(w.ctx, "none"), fault.ValidationError)
	refused(t, errOf(w.Operator.CreateNamespace(w.ctx, w.account.ID, "pipeline")), fault.ValidationError)
	listed := must(w.Operator.Namespaces(w.ctx, w.account.ID))(t)
	if len(listed) != 1 || listed[0].RevokedAt == nil {
		t.Errorf("%+v", listed)
	}
	equal(t, "trusts", len(must(w.Operator.Trusts(w.ctx, w.namespace.ID))(t)), 0)
	log := must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t)
	if !slices.ContainsFunc(log, func(e base.By[audit.Entry]) bool { return e.What.Action == audit.NamespaceRevoked }) {
		t.Errorf("the log: %+v", log)
	}
}

func TestARemovedTrustEndsItsKeys(t *testing.T) {
	w := newTrusting(t)
	made, token := w.exchanged(), w.token()
	other := must(w.Operator.AddTrust(w.ctx, keys.NewTrust{
		NamespaceID: w.namespace.ID, Issuer: ciIssuer, Audience: "another", Subject: ciSubject,
	}))(t)
	kept := must(w.exchange(w.namespace.ID, w.token(func(c *citoken.Claims) { c.Audience = []string{"another"} })))(t)
	ok(t, w.Operator.RemoveTrust(w.ctx, w.trust.ID))
	refused(t, errOf(w.Access.Admit(w.ctx, attempt(made.Text))), fault.Unauthorized)
	sameRefusal(t, "a token of the removed trust", errOf(w.exchange(w.namespace.ID, token)))
	w.admit(kept.Text)
	refused(t, w.Operator.RemoveTrust(w.ctx, w.trust.ID), fault.ValidationError)
	left := must(w.Operator.Trusts(w.ctx, w.namespace.ID))(t)
	if len(left) != 1 || left[0] != other {
		t.Errorf("%+v", left)
	}
	log := must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t)
	if !slices.ContainsFunc(log, func(e base.By[audit.Entry]) bool {
		return e.What.Action == audit.CITrustRemoved && e.What.Details["subject"] == "repo:acme/shop:**"
	}) {
		t.Errorf("the log: %+v", log)
	}
}

func TestExchangedKeysAreBounded(t *testing.T) {
	w := newTrusting(t)
	for range citoken.MaxLive {
		w.exchanged()
		w.clock.Advance(time.Second)
	}
	token := w.token()
	var full *fault.Error
	if err := errOf(w.exchange(w.namespace.ID, token)); !errors.As(err, &full) || full.Code != fault.RateLimited {
		t.Fatal(err)
	}
	equal(t, "when there is room", full.RetryAfter, time.Hour-citoken.MaxLive*time.Second)
	other := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "other"))(t)
	must(w.Operator.AddTrust(w.ctx, keys.NewTrust{
		NamespaceID: other.ID, Issuer: ciIssuer, Audience: ciAudience, Subject: ciSubject,
	}))(t)
	must(w.exchange(other.ID, w.token()))(t)
	w.clock.Advance(time.Hour - citoken.MaxLive*time.Second)
	sameRefusal(t, "a token that has expired meanwhile", errOf(w.exchange(w.namespace.ID, token)))
	w.exchanged()
}

func TestTrustsAreBounded(t *testing.T) {
	w := newTrusting(t)
	add := func(audience string) error {
		return errOf(w.Operator.AddTrust(w.ctx, keys.NewTrust{
			NamespaceID: w.namespace.ID, Issuer: ciIssuer, Audience: audience, Subject: ciSubject,
		}))
	}
	for n := range citoken.MaxTrusts - 1 {
		ok(t, add(fmt.Sprint(n)))
	}
	refused(t, add("one more"), fault.ValidationError)
	ok(t, w.Operator.RemoveTrust(w.ctx, w.trust.ID))
	refused(t, add("0"), fault.ValidationError) // the same again
	ok(t, add("one more"))
}

// Customers share the address of a CI system: tokens that are refused keep out nobody but pipelines of the same namespace there.
func TestRefusedTokensBehindASharedAddress(t *testing.T) {
	w := newTrusting(t)
	w.from = netip.MustParseAddr("198.51.100.7")
	theirs := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "other"))(t)
	for _, n := range []id.NamespaceID{theirs.ID, nobodysNamespace} { // one that there is, and one that there is not
		for range ratelimit.Defaults()[ratelimit.Token].Count {
			sameRefusal(t, "a token in vain", errOf(w.exchange(n, "x")))
		}
		err := errOf(w.exchange(n, "x"))
		refused(t, err, fault.RateLimited)
		var refusal *fault.Error
		equal(t, "says when", errors.As(err, &refusal) && refusal.RetryAfter > 0, true)
	}
	w.exchanged()
	w.from = netip.MustParseAddr("198.51.100.8")
	sameRefusal(t, "from elsewhere", errOf(w.exchange(theirs.ID, "x")))
}

const nobodysNamespace id.NamespaceID = "00000000-0000-4000-8000-000000000000"

// Commands about one kind of keys do nothing to the other.
func TestKindsOfKeysDoNotMix(t *testing.T) {
	w := newTrusting(t)
	ci, text, err := w.Operator.CreateCIKey(w.ctx, w.namespace.ID)
	ok(t, err)
	refused(t, w.Operator.RevokeKey(w.ctx, ci.ID), fault.ValidationError)
	_, _, err = w.Operator.ReplaceKey(w.ctx, ci.ID, keys.Bounds{})
	refused(t, err, fault.ValidationError)
	refused(t, w.Operator.RevokeCIKey(w.ctx, w.caller.Key.ID), fault.ValidationError)
	w.admit(text)
	w.admit(w.key)
	ok(t, w.Operator.RevokeCIKey(w.ctx, ci.ID))
	refused(t, errOf(w.Access.Admit(w.ctx, attempt(text))), fault.Unauthorized)
	refused(t, w.Operator.RevokeCIKey(w.ctx, ci.ID), fault.ValidationError)
	refused(t, w.Operator.RevokeCIKey(w.ctx, "none"), fault.ValidationError)
	for _, err := range []error{
		errOf(w.Operator.CIKeys(w.ctx, "none")), errOf(w.Operator.Trusts(w.ctx, "none")), errOf(w.Operator.Namespaces(w.ctx, "none")),
		w.Operator.RemoveTrust(w.ctx, "none"),
	} {
		refused(t, err, fault.ValidationError)
	}
	log := must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t)
	for _, what := range []audit.Action{audit.CIKeyCreated, audit.CIKeyRevoked} {
		if !slices.ContainsFunc(log, func(e base.By[audit.Entry]) bool {
			return e.What.Action == what && e.What.Details["key"] == ci.Prefix()
		}) {
			t.Errorf("%s is not in the log: %+v", what, log)
		}
	}
}

// Also one that says that it reaches the whole account does not.
func TestCIKeysSeeNoDatabases(t *testing.T) {
	w := newTrusting(t)
	db := w.made("shop").Record.ID
	c := w.caller
	c.Key.Kind, c.Key.NamespaceID = account.CIKey, w.namespace.ID
	refused(t, errOf(w.Access.Reach(w.ctx, c, db, account.See)), fault.DatabaseNotFound)
	if _, err := w.Access.Reach(w.ctx, access.Caller{Key: w.caller.Key, Account: w.account}, db, account.See); err != nil {
		t.Error(err)
	}
}
