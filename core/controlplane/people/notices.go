package people

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

// noticeTime is how long a notice is of use.
const noticeTime = 3 * 24 * time.Hour

// tell adds a mail to the owner of an account about how they log in, where the installation sends mails. It is not counted
// against what one address gets: nobody else causes it.
func (p *People) tell(ctx context.Context, tx ports.Tx, k mail.Kind, of id.AccountID, to, note string) error {
	if sends := p.base.Mailer.Check(to) == nil; !sends {
		return nil
	}
	ends := p.base.Clock.Now().Add(noticeTime)
	return p.post(ctx, tx, mail.Letter{Kind: k, AccountID: of, Recipient: to, ExpiresAt: ends, Note: note}, "")
}

// post adds a mail with a token, which may be empty.
func (p *People) post(ctx context.Context, tx ports.Tx, l mail.Letter, token string) error {
	m := base.NewID[id.MailID](p.base.Entropy)
	sealed, err := p.base.Secrets.Seal([]byte(token), mail.SecretContext(m))
	if err != nil {
		return err
	}
	return tx.Mails().Add(ctx, mail.New(m, l, sealed, p.base.Clock.Now()))
}

// warn tells a person of a log-in on a device that is not known, unless they were told of many just now: who knows the password
// causes these. The person is locked.
func (p *People) warn(ctx context.Context, tx ports.Tx, of id.AccountID, to string, from Client) error {
	recent, err := tx.Mails().Recent(ctx, of, to, p.base.Clock.Now().Add(-mail.Window))
	if err != nil || !recent.AdmitsWarning() {
		return err
	}
	return p.tell(ctx, tx, mail.ToWarn, of, to, mail.DeviceNote(from.Address.Unmap().String(), from.Agent))
}
