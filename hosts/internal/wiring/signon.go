package wiring

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/oidc"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/ports"
)

// SignOn says by which OpenID Connect issuer people log in, if by any. Only a host with pages has it.
type SignOn struct {
	Client     oidc.Client // without the secret, and the page of the dashboard to come back to
	SecretFile string
	CAFile     string
	Private    bool // the issuer may be at private addresses
	Rules      person.SignOnRules
}

// Flags gives a command the settings.
func (s *SignOn) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.Client.URL, "sign-on-issuer", "",
		"URL of the OpenID Connect issuer by which people log in, exactly as it calls itself; without one nobody does")
	f.StringVar(&s.Client.ClientID, "sign-on-client-id", "", "name by which the issuer knows this installation")
	f.StringVar(&s.SecretFile, "sign-on-client-secret-file", "", "file with the client's secret; without one it is a public client")
	f.StringVar(&s.CAFile, "sign-on-ca-file", "", "further authorities that the issuer's certificate may have")
	f.BoolVar(&s.Private, "sign-on-private", false, "the issuer, and where it says that it is asked, may be at private addresses")
	f.StringVar(&s.Rules.Name, "sign-on-name", "Single sign-on", "what people read on the button, and in mails")
	f.BoolVar(&s.Rules.Required, "sign-on-required", false,
		"nobody logs in by a password or a passkey, or resets a password; links of the operator still log in")
	f.BoolVar(&s.Rules.BothFactors, "sign-on-trusts-factor", false,
		"the issuer has asked for a second factor: an authenticator app is not asked for as well")
}

// Configured reports whether there is an issuer.
func (s SignOn) Configured() bool { return s.Client.URL != "" }

// open returns the issuer, nil where there is none, and what the installation makes of it. The options are those for issuers of
// CI tokens, and the origin is the dashboard's; but an issuer that the operator has chosen may be in the networks where webhooks
// of customers may not go.
func (s SignOn) open(o oidc.Options, origin *url.URL) (ports.SignOn, person.SignOnRules, error) {
	rules := s.Rules
	if !s.Configured() {
		if s.Client.ClientID != "" || s.SecretFile != "" || rules.Required {
			return nil, rules, errors.New("--sign-on-issuer is missing, without which the other --sign-on settings do nothing")
		}
		return nil, person.SignOnRules{}, nil
	}
	if origin == nil {
		return nil, rules, errors.New("--dashboard-url is missing: people come back there from --sign-on-issuer")
	}
	var err error
	if rules.Name, err = account.ValidateName(rules.Name); err != nil {
		return nil, rules, fmt.Errorf("--sign-on-name: %w", err)
	}
	o.Policy.Refused = nil
	o.Policy.AllowPrivate = o.Policy.AllowPrivate || s.Private
	if s.CAFile != "" {
		if o.ExtraCA, err = settings.Authorities("sign-on-ca-file", s.CAFile); err != nil {
			return nil, rules, err
		}
	}
	client := s.Client
	client.Redirect = origin.String() + "/sign-on/back"
	if s.SecretFile != "" {
		text, err := os.ReadFile(s.SecretFile)
		if err != nil {
			return nil, rules, fmt.Errorf("--sign-on-client-secret-file: %w", err)
		}
		if client.Secret = strings.TrimRight(string(text), "\r\n"); client.Secret == "" {
			return nil, rules, errors.New("--sign-on-client-secret-file: the file is empty")
		}
	}
	issuer, err := oidc.NewSignOn(o, client)
	if err != nil {
		return nil, rules, fmt.Errorf("the --sign-on settings: %w", err)
	}
	return issuer, rules, nil
}
