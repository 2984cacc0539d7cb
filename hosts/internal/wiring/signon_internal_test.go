package wiring

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/oidc"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// pages are where people come back to.
var pages = &url.URL{Scheme: "https", Host: "app.example.org"}

func signOnOf(t *testing.T, variables map[string]string) SignOn {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value)
	}
	var s SignOn
	cmd := &cobra.Command{}
	s.Flags(cmd)
	check.NoError(t, settings.Apply(cmd))
	return s
}

func TestSignOnIsConfigured(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	check.NoError(t, os.WriteFile(secret, []byte("the secret\n"), 0o600))
	s := signOnOf(t, map[string]string{
		"PGHERD_SIGN_ON_ISSUER": "https://login.example.org/realms/acme", "PGHERD_SIGN_ON_CLIENT_ID": "pgherd",
		"PGHERD_SIGN_ON_CLIENT_SECRET_FILE": secret, "PGHERD_SIGN_ON_NAME": "Acme", "PGHERD_SIGN_ON_REQUIRED": "true",
	})
	issuer, rules, err := s.open(oidc.Options{Clock: fakeclock.New()}, pages)
	if err != nil || !s.Configured() || rules != (person.SignOnRules{Name: "Acme", Required: true}) {
		t.Fatalf("%+v, %v", rules, err)
	}
	if is := issuer.Issuer(); is != (person.Issuer{URL: "https://login.example.org/realms/acme", ClientID: "pgherd"}) {
		t.Errorf("%+v", is)
	}
}

func TestSignOnIsOptional(t *testing.T) {
	s := signOnOf(t, nil)
	if issuer, _, err := s.open(oidc.Options{}, pages); err != nil || issuer != nil || s.Configured() {
		t.Errorf("%T, %v", issuer, err)
	}
}

func TestSignOnSettingsAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	check.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	good := signOnOf(t, map[string]string{
		"PGHERD_SIGN_ON_ISSUER": "https://login.example.org", "PGHERD_SIGN_ON_CLIENT_ID": "pgherd",
	})
	for want, change := range map[string]func(*SignOn){
		"--sign-on-issuer":             func(s *SignOn) { s.Client.URL = "" },
		"--sign-on-name":               func(s *SignOn) { s.Rules.Name = "\u202e" },
		"--sign-on-ca-file":            func(s *SignOn) { s.CAFile = "/nowhere" },
		"PEM":                          func(s *SignOn) { s.CAFile = empty },
		"--sign-on-client-secret-file": func(s *SignOn) { s.SecretFile = "/nowhere" },
		"the file is empty":            func(s *SignOn) { s.SecretFile = empty },
		"not public":                   func(s *SignOn) { s.Client.URL = "https://10.0.0.1" },
		"client ID":                    func(s *SignOn) { s.Client.ClientID = "" },
	} {
		s := good
		change(&s)
		if _, _, err := s.open(oidc.Options{Clock: fakeclock.New()}, pages); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if _, _, err := good.open(oidc.Options{Clock: fakeclock.New()}, nil); err == nil {
		t.Error("there is no page to come back to")
	}
	good.Client.URL, good.Private = "https://10.0.0.1", true
	if _, _, err := good.open(oidc.Options{Clock: fakeclock.New()}, pages); err != nil {
		t.Errorf("a private one that is allowed: %v", err)
	}
}
