package mail

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// The mails that an account may cause within Window. Without these bounds a customer fills a stranger's mailbox, and the
// installation's mail server is soon taken for a sender of spam. An account has a part of what one address gets from all, so that
// no customer can use up the mails that another may send.
const (
	Window       = 24 * time.Hour
	MaxRecipient = 5   // of one account to one Mailbox
	MaxAccount   = 200 // of one account to all addresses
	MaxTogether  = 25  // of all accounts to one Mailbox
	MaxWarnings  = 5   // of log-ins, beside these: who knows a password fills no mailbox, and the first ones say so
)

// Recent is how many mails were added within Window, withdrawn ones too.
type Recent struct {
	ToRecipient int `db:"to_recipient"` // of the account to the address, with any tag
	OfAccount   int `db:"of_account"`   // of the account
	Together    int `db:"together"`     // of all accounts to the address, with any tag
	Warnings    int `db:"warnings"`     // of the account, which count in none of the others
}

// Admit returns RATE_LIMITED where an account that has caused so many mails may not cause another to the same address.
func (r Recent) Admit() error {
	switch {
	case r.ToRecipient >= MaxRecipient:
		return tooMany("this address, with any +tag, was sent %d invitations in the last 24 hours; wait before the next", MaxRecipient)
	case r.OfAccount >= MaxAccount:
		return tooMany("the account has sent %d invitations in the last 24 hours; wait before the next", MaxAccount)
	case r.Together >= MaxTogether:
		return tooMany("%d invitations went to this address, with any +tag, in the last 24 hours; wait before the next", MaxTogether)
	}
	return nil
}

// AdmitsWarning reports whether the owner of the account gets another warning.
func (r Recent) AdmitsWarning() bool { return r.Warnings < MaxWarnings }

func tooMany(format string, most int) error {
	refusal := fault.New(fault.RateLimited, format, most)
	refusal.RetryAfter = time.Hour
	return refusal
}
