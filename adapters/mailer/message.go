package mailer

import (
	"fmt"
	"net/mail"
	"strings"

	gomail "github.com/wneessen/go-mail"

	"github.com/pgherd/pgherd/core/id"
	message "github.com/pgherd/pgherd/core/mail"
)

// sender is who the mails come from.
type sender struct {
	address *mail.Address
	domain  string
}

// parseSender reads "Name <address>" or an address alone.
func parseSender(text string) (sender, error) {
	a, err := mail.ParseAddress(text)
	if err == nil {
		err = message.CheckRecipient(a.Address)
	}
	if err != nil {
		return sender{}, fmt.Errorf("the sender %q is no mail address of ASCII characters", text)
	}
	return sender{a, a.Address[strings.LastIndex(a.Address, "@")+1:]}, nil
}

// write makes a message of plain text and HTML. An attempt that is repeated has the same Message-ID.
func (s sender) write(m message.Message) (*gomail.Msg, error) {
	if _, err := id.Parse[id.MailID](string(m.ID)); err != nil {
		return nil, fmt.Errorf("the mail's ID: %w", err)
	}
	if err := message.CheckRecipient(m.To); err != nil {
		return nil, &message.Refusal{Reason: "no mail server takes the address"}
	}
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.FromMailAddress(s.address)
	out.ToMailAddress(&mail.Address{Address: m.To})
	out.Subject(m.Subject)
	out.SetMessageIDWithValue(string(m.ID) + "@" + s.domain)
	out.SetDateWithValue(m.At)
	out.SetGenHeader("Auto-Submitted", "auto-generated") // no automatic answers (RFC 3834)
	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	out.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return out, nil
}
