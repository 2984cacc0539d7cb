package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Client is an installation as its issuer knows it.
type Client struct {
	person.Issuer
	Secret   string // empty: a public client, which has PKCE alone
	Redirect string // the page to which the issuer sends browsers back
}

// check returns an error for a client that no issuer takes.
func (c Client) check(o Options) error {
	u, err := url.Parse(c.URL)
	redirect, redirectErr := url.Parse(c.Redirect)
	switch {
	case err != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("oidc: an issuer is an https URL without query and fragment")
	case c.ClientID == "" || !ascii.Visible(c.ClientID):
		return errors.New("oidc: the client ID is missing, or has characters that none has")
	case redirectErr != nil || redirect.Scheme != "https" && (redirect.Scheme != "http" || redirect.Hostname() != "localhost"):
		return fmt.Errorf("oidc: the page %q to come back to is not https, nor this machine's", c.Redirect)
	}
	if _, err := o.Policy.ParseURL(c.URL); err != nil {
		return fmt.Errorf("oidc: the issuer %q: %w", c.URL, err)
	}
	return nil
}

// SignOn implements ports.SignOn. It is safe for concurrent use.
type SignOn struct {
	client    Client
	issuer    *issuer
	exchanges http.RoundTripper
}

var _ ports.SignOn = (*SignOn)(nil)

// NewSignOn makes one that asks nobody yet. It fails for a client that no issuer takes, and where ExtraCA cannot be used.
func NewSignOn(o Options, c Client) (*SignOn, error) {
	if err := c.check(o); err != nil {
		return nil, err
	}
	roots, err := guarded.Roots(o.ExtraCA)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = signOnTimeout
	}
	documents, exchanges := newTransport(o, roots), newTransport(o, roots)
	exchanges.refusals = true
	return &SignOn{c, &issuer{url: c.URL, transport: documents, now: o.Clock.Now}, exchanges}, nil
}

// signOnTimeout bounds one request for a person, who has to begin anew where a slow issuer is not waited for.
const signOnTimeout = 10 * time.Second

// Issuer implements ports.SignOn.
func (s *SignOn) Issuer() person.Issuer { return s.client.Issuer }

// Begin implements ports.SignOn.
func (s *SignOn) Begin(ctx context.Context, q ports.SignOnRequest) (string, error) {
	leave, _, says, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if u, err := url.Parse(says.Authorize); err != nil || u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		return "", unavailable("the issuer has no authorization endpoint that is an https URL")
	}
	config, err := s.config(says)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(q.Nonce), oauth2.S256ChallengeOption(q.Verifier)}
	age := person.Life // whoever is asked for an age says when somebody logged in
	if q.Anew {
		age = 0
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	options = append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(age.Seconds()))))
	return config.AuthCodeURL(q.State, options...), nil
}

// enter takes a place among those who wait for the issuer, and returns its keys and what it says of itself.
func (s *SignOn) enter(ctx context.Context) (leave func(), keys *keySet, says configuration, err error) {
	if leave, err = s.issuer.enter(); err != nil {
		return nil, nil, says, unavailable("too many people wait for the issuer")
	}
	keys, err = s.issuer.keys(ctx)
	says, why := s.issuer.last()
	switch {
	case err == nil:
		return leave, keys, says, nil
	case ctx.Err() == nil:
		err = notAnswered(why)
	}
	leave()
	return nil, nil, says, err
}

// config is the client, as the issuer wants it to show who it is.
func (s *SignOn) config(says configuration) (*oauth2.Config, error) {
	c := &oauth2.Config{
		ClientID: s.client.ClientID, ClientSecret: s.client.Secret, RedirectURL: s.client.Redirect,
		Scopes:   []string{oidc.ScopeOpenID, oidc.ScopeEmail},
		Endpoint: oauth2.Endpoint{AuthURL: says.Authorize, TokenURL: says.Token},
	}
	switch {
	case c.ClientSecret == "":
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	case len(says.Methods) == 0 || slices.Contains(says.Methods, "client_secret_basic"): // it is what saying nothing means
		c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	case slices.Contains(says.Methods, "client_secret_post"):
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	default:
		return nil, unavailable("the issuer takes a client secret neither by client_secret_basic nor by client_secret_post")
	}
	return c, nil
}

// Finish implements ports.SignOn.
func (s *SignOn) Finish(ctx context.Context, a ports.SignOnAnswer) (person.Told, error) {
	leave, keys, says, err := s.enter(ctx)
	if err != nil {
		return person.Told{}, err
	}
	defer leave()
	if a.Issuer != s.client.URL && (a.Issuer != "" || says.NamesItself) {
		return person.Told{}, person.ErrSignOn()
	}
	config, err := s.config(says)
	if err != nil {
		return person.Told{}, err
	}
	token, err := config.Exchange(oidc.ClientContext(ctx, &http.Client{Transport: s.exchanges}), a.Code,
		oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return person.Told{}, notExchanged(ctx, err)
	}
	t, err := s.told(ctx, token, keys)
	if err == nil && t.Email == "" && says.UserInfo != "" {
		err = s.askMore(ctx, &t, token, says.UserInfo)
	}
	if err != nil {
		return person.Told{}, err
	}
	return t, nil
}

// notExchanged is the error for a code that the issuer did not take.
func notExchanged(ctx context.Context, err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &refused):
		return notAnswered(err)
	case refused.ErrorCode == "invalid_grant":
		return person.ErrSignOn()
	case slices.Contains(refusals, refused.ErrorCode):
		return unavailable("the issuer refuses to exchange codes: " + refused.ErrorCode)
	}
	return unavailable("the issuer refuses to exchange codes")
}

// refusals are what an issuer can have against the installation (RFC 6749, section 5.2). Nothing else that it writes is logged.
var refusals = []string{
	"invalid_client", "unauthorized_client", "invalid_request", "unsupported_grant_type", "invalid_scope", "access_denied",
}

// told is what the ID token of an exchange says, if the issuer has signed it.
func (s *SignOn) told(ctx context.Context, token *oauth2.Token, keys *keySet) (person.Told, error) {
	raw, _ := token.Extra("id_token").(string)
	p, err := open(raw)
	if err != nil || p.issuer != s.client.URL {
		return person.Told{}, person.NotSigned
	}
	found, err := signed(ctx, raw, p, keys)
	switch {
	case errors.Is(err, citoken.NotAsked):
		return person.Told{}, unavailable("the issuer did not answer when it was asked for its keys")
	case errors.Is(err, citoken.NotSigned):
		return person.Told{}, person.NotSigned
	case err != nil:
		return person.Told{}, err
	}
	t := person.Told{
		Issuer: found.Issuer, Subject: found.Subject, Audience: found.Audience, Nonce: found.Nonce,
		ExpiresAt: utc(found.Expiry), IssuedAt: utc(found.IssuedAt),
	}
	var c claims
	if found.Claims(&c) != nil || c.read("azp", &t.Party) != nil || c.readAddress(&t) != nil ||
		c.readTime("nbf", &t.NotBefore) != nil || c.readTime("auth_time", &t.AuthenticatedAt) != nil {
		return person.Told{}, person.NotSigned
	}
	return t, nil
}

// askMore asks for the address where the ID token has none: so the standard wants it of issuers that are asked for a code alone.
func (s *SignOn) askMore(ctx context.Context, t *person.Told, token *oauth2.Token, at string) error {
	ctx = oidc.ClientContext(ctx, &http.Client{Transport: s.issuer.transport})
	config := oidc.ProviderConfig{IssuerURL: s.client.URL, UserInfoURL: at}
	found, err := config.NewProvider(ctx).UserInfo(ctx, oauth2.StaticTokenSource(token))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return notAnswered(err)
	}
	var c claims
	var subject string
	if found.Claims(&c) != nil || c.read("sub", &subject) != nil || subject != t.Subject || c.readAddress(t) != nil {
		return person.NotSigned
	}
	return nil
}

// claims are read by their exact names: encoding/json would take others that differ in letter case.
type claims map[string]json.RawMessage

// read reads a claim, where it is there.
func (c claims) read(name string, into any) error {
	if raw, is := c[name]; is {
		return json.Unmarshal(raw, into)
	}
	return nil
}

func (c claims) readTime(name string, into *time.Time) error {
	var at *float64
	err := c.read(name, &at)
	if at != nil {
		*into = seconds(*at)
	}
	return err
}

// readAddress reads the address, and whether it is verified. Entra ID never says email_verified but, where it is asked to, that
// the tenant has verified the domain of the address (xms_edov); where the standard's claim is there, that alone counts. Both are
// written in several ways.
func (c claims) readAddress(t *person.Told) error {
	verified, said := c["email_verified"]
	if !said {
		verified = c["xms_edov"]
	}
	t.Vouched = slices.Contains([]string{"true", `"true"`, "1", `"1"`}, string(verified))
	return c.read("email", &t.Email)
}

// unavailable is SERVER_BUSY for people, with the cause for the operator's log.
func unavailable(cause string) error { return busy(errors.New(cause)) }

// notAnswered is unavailable for an error of the library. Only what the transport says is kept, and what an issuer calls itself:
// other texts quote documents.
func notAnswered(err error) error {
	var mismatch *oidc.IssuerMismatchError
	switch {
	case errors.As(err, &mismatch):
		return busy(fmt.Errorf("the issuer calls itself %.200q", mismatch.Discovered))
	case errors.Is(err, errNotAnswered):
		return busy(err)
	}
	return busy(errNotAnswered)
}

func busy(cause error) error {
	e := fault.Wrap(cause, fault.ServerBusy, "the sign-on cannot be used at the moment; tell the operator if that lasts")
	e.RetryAfter = pause
	return e
}
