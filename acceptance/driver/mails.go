package driver

import (
	"github.com/pgherd/pgherd/acceptance/eml"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/fakes/mailbox"
)

// fakeMails are the mails of a fake mailbox.
func fakeMails(box *mailbox.Mailbox) func(to string) ([]spec.Mail, error) {
	return func(to string) (list []spec.Mail, _ error) {
		for _, m := range box.Mails(to) {
			list = append(list, spec.Mail{
				MessageID: string(m.ID), To: m.To, Subject: m.Subject, Text: m.Text, HTML: m.HTML,
			})
		}
		return list, nil
	}
}

// mails are those in the folder of the real service, the oldest first. No log may hold a token of theirs.
func (r *realService) mails(to string) ([]spec.Mail, error) {
	found, err := eml.ReadFolder(r.MailboxDir())
	var list []spec.Mail
	for _, m := range found {
		mail := spec.Mail(m)
		r.secrets.add(mail.Token())
		if m.To == to {
			list = append(list, mail)
		}
	}
	return list, err
}
