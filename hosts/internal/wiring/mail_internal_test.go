package wiring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/mailer"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// mailOf reads the settings as a host does.
func mailOf(t *testing.T, variables map[string]string) Mail {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value)
	}
	var m Mail
	cmd := &cobra.Command{}
	m.Flags(cmd)
	check.NoError(t, settings.Apply(cmd))
	return m
}

func TestMailIsConfigured(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	check.NoError(t, os.WriteFile(secret, []byte("the password\n"), 0o600))
	m := mailOf(t, map[string]string{
		"PGHERD_SMTP_ADDRESS": "mail.example.com:587", "PGHERD_SMTP_FROM": "pgherd <no-reply@example.com>", "PGHERD_SMTP_USER": "u",
		"PGHERD_SMTP_PASSWORD_FILE": secret, "PGHERD_INVITATION_URL": "https://app.example.com/join",
	})
	sends, _, err := m.open()
	server, is := sends.(*mailer.SMTP)
	if err != nil || !is || server.Password != "the password" || server.Security != mailer.StartTLS || !m.Configured() {
		t.Errorf("%T, %v", sends, err)
	}
}

func TestMailIntoAFolder(t *testing.T) {
	m := mailOf(t, map[string]string{"PGHERD_MAILBOX_DIR": filepath.Join(t.TempDir(), "mailbox")})
	sends, _, err := m.open()
	if _, is := sends.(*mailer.Folder); err != nil || !is || !m.Configured() {
		t.Errorf("%T, %v", sends, err)
	}
}

func TestLinksLeadToTheDashboard(t *testing.T) {
	m := mailOf(t, map[string]string{"PGHERD_DASHBOARD_URL": "https://db.example.com"})
	_, pages, err := m.open()
	if err != nil || pages.Invitation.With("T") != "https://db.example.com/invitation/T" ||
		pages.Reset.With("T") != "https://db.example.com/reset/T" {
		t.Errorf("%+v, %v", pages, err)
	}
	m.Page = "https://app.example.com/join"
	if _, pages, err = m.open(); err != nil || pages.Invitation.With("T") != "https://app.example.com/join#token=T" {
		t.Errorf("%+v, %v", pages, err)
	}
}

func TestMailIsOptional(t *testing.T) {
	m := mailOf(t, nil)
	if sends, _, err := m.open(); err != nil || sends != nil || m.Configured() {
		t.Errorf("%T, %v", sends, err)
	}
}

func TestMailSettingsAreRefused(t *testing.T) {
	for want, m := range map[string]Mail{
		"exclude each other": {SMTP: mailer.Options{Address: "a:25"}, Dir: "/tmp/x"},
		"--invitation-url":   {Page: "http://app.example.com"},
		"--dashboard-url":    {Dashboard: "db.example.com"},
		"--smtp-ca-file":     {SMTP: mailer.Options{Address: "a:25"}, CAFile: "/nowhere"},
		"TLS is":             {SMTP: mailer.Options{Address: "a:25", From: "a@b"}, TLS: "maybe"},
	} {
		if _, _, err := m.open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
