package mail

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Message is a mail as it is sent. Text and HTML contain the token of an invitation, so a Message is never logged.
type Message struct {
	ID      id.MailID // makes the Message-ID, the same for every attempt
	At      time.Time // the Date
	To      string    // an address and nothing else
	Subject string
	Text    string
	HTML    string
}

// Refusal means that a mail will never be taken.
type Refusal struct {
	Reason   string // may be shown to the customer
	Doubtful bool   // no cause was given, so it may be temporary
}

func (r *Refusal) Error() string { return r.Reason }
