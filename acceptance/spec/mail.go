package spec

import (
	"regexp"

	"github.com/pgherd/pgherd/core/mail"
)

// InvitationPage is where the mails of every driver say that invitations are accepted.
const InvitationPage = "https://app.example.org/invitations"

// Mail is a mail as its recipient has it.
type Mail struct {
	MessageID, To, Subject, Text, HTML string
}

var tokenInLink = regexp.MustCompile(regexp.QuoteMeta(InvitationPage) + `#token=([0-9A-Za-z_-]+)`)

// Token is the token in the link of an invitation; empty where there is none.
func (m Mail) Token() string {
	if found := tokenInLink.FindStringSubmatch(m.Text); found != nil {
		return found[1]
	}
	return ""
}

// MailsTo waits until an address has had so many mails, and returns them, the oldest first.
func (s *Stage) MailsTo(address string, n int) (mails []Mail) {
	s.Helper()
	s.That(mail.CheckRecipient(address) == nil, "%q is no address", address)
	s.Eventually("mails to "+address, func() bool {
		var err error
		mails, err = s.Mails(address)
		s.OK(err)
		return len(mails) >= n
	})
	s.That(len(mails) == n, "%d mails to %s; want %d", len(mails), address, n)
	return mails
}
