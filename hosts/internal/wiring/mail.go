package wiring

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/mailer"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/ports"
)

// Mail says how mails are sent: by a mail server, into a folder, or not at all. API hosts have it too, because they refuse to
// invite people where nobody can ever send the mail; they connect to no mail server.
type Mail struct {
	SMTP      mailer.Options
	TLS       string
	CAFile    string
	Dir       string // a folder that takes a file for each mail
	Page      string // where invitations are accepted, if not on the dashboard
	Dashboard string // its address
}

// Flags gives a command the settings.
func (m *Mail) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	m.OutboxFlags(cmd)
	f.StringVar(&m.TLS, "smtp-tls", string(mailer.StartTLS),
		"starttls, tls (from the first byte), or none (only to a mail server on this machine)")
	f.StringVar(&m.SMTP.User, "smtp-user", "", "who logs in at the mail server")
	f.StringVar(&m.SMTP.Password, "smtp-password", "", "prefer PGHERD_SMTP_PASSWORD or PGHERD_SMTP_PASSWORD_FILE")
	f.StringVar(&m.SMTP.From, "smtp-from", "", `who mails come from: an address, or "Name <address>"`)
	f.StringVar(&m.CAFile, "smtp-ca-file", "", "further authorities that the mail server's certificate may have")
	f.StringVar(&m.Page, "invitation-url", "",
		"page where invitations are accepted; the token is put in the place of {token}, or becomes the fragment #token=")
	DashboardFlag(cmd, &m.Dashboard)
}

// OutboxFlags gives a command the settings that say whether mails can be sent.
func (m *Mail) OutboxFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.SMTP.Address, "smtp-address", "", "host:port of the mail server; without one nobody can be invited")
	f.StringVar(&m.Dir, "mailbox-dir", "", "folder that takes a file for each mail, in place of a mail server")
}

// DashboardFlag gives a command the address of the dashboard.
func DashboardFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "dashboard-url", "", "address of the dashboard, such as https://db.example.com: links lead there")
}

// Outbox is for whoever adds mails that others send: it checks addresses. It is nil where no mails can be sent.
func (m Mail) Outbox() ports.Mailer {
	if !m.Configured() {
		return nil
	}
	return outbox{}
}

type outbox struct{ ports.NoMail }

func (outbox) Check(to string) error { return mail.CheckRecipient(to) }

// Configured reports whether mails can be sent.
func (m Mail) Configured() bool { return m.SMTP.Address != "" || m.Dir != "" }

// open returns the mailer, nil where mails are not configured, and the pages.
func (m Mail) open() (sends ports.Mailer, pages mail.Pages, err error) {
	if m.Dashboard != "" {
		if pages, err = mail.DashboardPages(m.Dashboard); err != nil {
			return nil, pages, fmt.Errorf("--dashboard-url: %w", err)
		}
	}
	if m.Page != "" {
		if pages.Invitation, err = mail.ParseLink(m.Page); err != nil {
			return nil, pages, fmt.Errorf("--invitation-url: %w", err)
		}
	}
	switch {
	case m.SMTP.Address != "" && m.Dir != "":
		return nil, pages, errors.New("--smtp-address and --mailbox-dir exclude each other")
	case m.Dir != "":
		folder, err := mailer.NewFolder(m.Dir)
		if err != nil {
			return nil, pages, fmt.Errorf("--mailbox-dir: %w", err)
		}
		return folder, pages, nil
	case m.SMTP.Address == "":
		return nil, pages, nil
	}
	options := m.SMTP
	options.Security = mailer.Security(m.TLS)
	if m.CAFile != "" {
		if options.CA, err = settings.Authorities("smtp-ca-file", m.CAFile); err != nil {
			return nil, pages, err
		}
	}
	server, err := mailer.NewSMTP(options)
	if err != nil {
		return nil, pages, fmt.Errorf("the --smtp settings: %w", err)
	}
	return server, pages, nil
}
