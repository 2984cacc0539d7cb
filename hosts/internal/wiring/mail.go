package wiring

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/mailer"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

// Mail says how mails are sent: by a mail server, into a folder, or not at all. API hosts have it too, because they refuse to
// invite people where nobody can ever send the mail; they connect to no mail server.
type Mail struct {
	SMTP   mailer.Options
	TLS    string
	CAFile string
	Dir    string // a folder that takes a file for each mail
	Page   string // where invitations are accepted
}

// Flags gives a command the settings.
func (m *Mail) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.SMTP.Address, "smtp-address", "", "host:port of the mail server; without one nobody can be invited")
	f.StringVar(&m.TLS, "smtp-tls", string(mailer.StartTLS),
		"starttls, tls (from the first byte), or none (only to a mail server on this machine)")
	f.StringVar(&m.SMTP.User, "smtp-user", "", "who logs in at the mail server")
	f.StringVar(&m.SMTP.Password, "smtp-password", "", "prefer PGHERD_SMTP_PASSWORD or PGHERD_SMTP_PASSWORD_FILE")
	f.StringVar(&m.SMTP.From, "smtp-from", "", `who mails come from: an address, or "Name <address>"`)
	f.StringVar(&m.CAFile, "smtp-ca-file", "", "further authorities that the mail server's certificate may have")
	f.StringVar(&m.Dir, "mailbox-dir", "", "folder that takes a file for each mail, in place of a mail server")
	f.StringVar(&m.Page, "invitation-url", "",
		"page where invitations are accepted; the token is put in the place of {token}, or becomes the fragment #token=")
}

// Configured reports whether mails can be sent.
func (m Mail) Configured() bool { return m.SMTP.Address != "" || m.Dir != "" }

// open returns the mailer, nil where mails are not configured, and the page.
func (m Mail) open() (ports.Mailer, mail.Link, error) {
	var page mail.Link
	if m.Page != "" {
		var err error
		if page, err = mail.ParseLink(m.Page); err != nil {
			return nil, page, fmt.Errorf("--invitation-url: %w", err)
		}
	}
	switch {
	case m.SMTP.Address != "" && m.Dir != "":
		return nil, page, errors.New("--smtp-address and --mailbox-dir exclude each other")
	case m.Dir != "":
		folder, err := mailer.NewFolder(m.Dir)
		return folder, page, err
	case m.SMTP.Address == "":
		return nil, page, nil
	}
	options := m.SMTP
	options.Security = mailer.Security(m.TLS)
	if m.CAFile != "" {
		var err error
		if options.CA, err = os.ReadFile(m.CAFile); err != nil {
			return nil, page, fmt.Errorf("--smtp-ca-file: %w", err)
		}
	}
	server, err := mailer.NewSMTP(options)
	return server, page, err
}
