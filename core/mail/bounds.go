package mail

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// The mails that an account may cause within Window. Without these bounds a customer fills a stranger's mailbox, and the
// installation's mail server is soon taken for a sender of spam. They hold by account, so that no customer can use up the mails
// that another may send.
const (
	Window       = 24 * time.Hour
	MaxRecipient = 5   // to one address
	MaxAccount   = 200 // to all addresses
)

// Recent is how many mails of an account were added within Window, withdrawn ones too.
type Recent struct {
	ToRecipient int `db:"to_recipient"`
	OfAccount   int `db:"of_account"`
}

// Admit returns RATE_LIMITED where an account that has caused so many mails may not cause another to the same address.
func (r Recent) Admit() error {
	switch {
	case r.ToRecipient >= MaxRecipient:
		return tooMany("this address was sent %d invitations in the last 24 hours; wait before you send another", MaxRecipient)
	case r.OfAccount >= MaxAccount:
		return tooMany("the account has sent %d invitations in the last 24 hours; wait before you send another", MaxAccount)
	}
	return nil
}

func tooMany(format string, most int) error {
	refusal := fault.New(fault.RateLimited, format, most)
	refusal.RetryAfter = time.Hour
	return refusal
}
