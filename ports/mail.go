package ports

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
)

// Mailer makes single attempts to send a mail. It does not decide about retries.
type Mailer interface {
	// Check returns an error where no mail can ever be sent to an address: FEATURE_NOT_AVAILABLE where the installation sends none,
	// VALIDATION_ERROR on "email" where the address is none that mail servers take. It asks no server.
	Check(to string) error
	// Send hands a mail over. An error that is a *mail.Refusal is permanent: the same mail will always be refused, or may be, where
	// the refusal is doubtful. Any other may be gone later; it may also mean that the mail was taken and the answer lost. No error
	// contains the mail's text.
	Send(ctx context.Context, m mail.Message) error
}

// NoMail is the mailer of an installation that sends no mails.
type NoMail struct{}

// Check refuses with FEATURE_NOT_AVAILABLE.
func (NoMail) Check(string) error {
	return fault.New(fault.FeatureNotAvailable, "this installation sends no mails, so nobody can be invited; ask its operator")
}

// Send fails.
func (NoMail) Send(context.Context, mail.Message) error {
	return errors.New("this installation sends no mails")
}

// Mails keeps mails on their way. A mail goes with its database.
type Mails interface {
	// Add stores a mail and wakes dispatchers when the transaction commits. ErrNoRow where there is no such account or, for an
	// invitation, no such database.
	Add(ctx context.Context, m mail.Mail) error
	// Recent counts the mails that an account, and that all accounts together, have added since a time; notices do not count, and
	// warnings by themselves.
	// Addresses with the same mail.Mailbox are one. Where two callers must not both take an account's last place, they hold the
	// account's lock.
	Recent(ctx context.Context, account id.AccountID, recipient string, since time.Time) (mail.Recent, error)
	// Withdraw applies mail.Mail.Withdrawn to every mail of an invitation.
	Withdraw(ctx context.Context, i id.InvitationID, now time.Time) error
	// ClaimNext takes a claimable mail, as mail.Mail.Claimed leaves it; ErrNoRow when there is none. It is fair: among the
	// accounts with fewer than perAccount mails under lease it chooses the one with the fewest, among several the one that was
	// served longest ago, and of that account the mail that has been due longest. Two dispatchers never claim the same one, nor
	// do they together exceed perAccount. A claim does not wait for another: it may overlook an account that is being served.
	ClaimNext(ctx context.Context, owner string, now time.Time, hold time.Duration, perAccount int) (mail.Mail, error)
	// Lock returns a mail and locks it until the transaction ends; ErrNoRow when there is none.
	Lock(ctx context.Context, m id.MailID) (mail.Mail, error)
	// SaveLeased writes every field that can change, provided that the stored epoch is still m.Epoch; ErrLeaseLost otherwise, and
	// nothing is written.
	SaveLeased(ctx context.Context, m mail.Mail) error
	// Forget deletes up to limit mails that became final before a time.
	Forget(ctx context.Context, before time.Time, limit int) error
	// Backlog returns how many mails wait, and when the oldest of them was added.
	Backlog(ctx context.Context) (Tally, error)
}
