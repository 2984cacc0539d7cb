// Package mail is the rules of mails: who gets one, when it is tried again, when it is given up, and what it says.
package mail

import (
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/lease"
)

// Kind is what a mail is about.
type Kind string

// The kinds.
const (
	ToInvite  Kind = "invitation" // to a database
	ToWelcome Kind = "welcome"    // a link with which somebody for whom the operator has made an account chooses a password
	ToReset   Kind = "reset"      // a link with which a person chooses another password
	ToTell    Kind = "notice"     // what has changed in how a person logs in
	ToWarn    Kind = "warning"    // a log-in on a device where the person had not logged in before
)

// Kinds lists them in the order of the docs.
var Kinds = []Kind{ToInvite, ToWelcome, ToReset, ToTell, ToWarn}

// Letter is what a mail says, with the names as they were when it was added.
type Letter struct {
	Kind      Kind         `db:"kind"`
	AccountID id.AccountID `db:"account_id"` // whose it is: mails are sent fairly by account
	Recipient string       `db:"recipient"`
	ExpiresAt time.Time    `db:"expires_at"` // when it is worth nothing any more

	// Of an invitation only.
	InvitationID id.InvitationID  `db:"invitation_id"`
	DatabaseID   id.DatabaseID    `db:"database_id"`
	Inviter      string           `db:"inviter"`          // the name of who invites
	Database     string           `db:"database_display"` // the database's display name
	Role         account.Standing `db:"role"`

	Note string `db:"note"` // of a notice or warning: what has happened, in one sentence
}

// Mail is one mail on its way. Its ID makes the Message-ID of every attempt, so that a receiver can recognise a repeated one.
type Mail struct {
	ID id.MailID `db:"id"`
	Letter
	SealedToken []byte     `db:"sealed_token"` // encrypted under SecretContext; nil once the status is final
	Status      Status     `db:"status"`
	Attempts    int        `db:"attempts"` // that failed
	CreatedAt   time.Time  `db:"created_at"`
	FinishedAt  *time.Time `db:"finished_at"`
	lease.Lease
}

// New makes a mail that is due at once. sealed is its token, of a notice or warning the empty one, under SecretContext.
func New(m id.MailID, l Letter, sealed []byte, now time.Time) Mail {
	return Mail{ID: m, Letter: l, SealedToken: sealed, Status: Pending, CreatedAt: now, Lease: lease.Lease{NotBefore: now}}
}

// SecretContext binds a stored token to its mail.
func SecretContext(m id.MailID) string { return "mail/" + string(m) }

// Outcome is the outcome of an attempt. Error is empty exactly for a success; it may be shown to the customer.
type Outcome struct {
	Error     string
	Permanent bool // another attempt would fail the same way
	Doubtful  bool // another attempt may fail the same way: it is the last where MaxDoubtful have failed, however they failed
}

// Settle returns the mail after an attempt: sent, due again after the schedule's delay, or given up.
func (m Mail) Settle(o Outcome, now time.Time) (Mail, error) {
	on, next := Deliver, now
	if o.Error != "" {
		m.Attempts++
		on, next = m.afterFailure(o, now)
	}
	m, err := m.apply(on, now)
	if err == nil && on == Retry {
		m.NotBefore = next
	}
	return m, err
}

func (m Mail) afterFailure(o Outcome, now time.Time) (Event, time.Time) {
	delay, left := Delay(m.Attempts)
	next := now.Add(delay)
	if o.Permanent || o.Doubtful && m.Attempts >= MaxDoubtful || !left || !next.Before(m.ExpiresAt) {
		return GiveUp, now
	}
	return Retry, next
}

// Withdrawn returns the mail after its invitation ended or got another token. An attempt that is running loses its lease: the
// mail may arrive, and its token is worth nothing.
func (m Mail) Withdrawn(now time.Time) (Mail, error) { return m.apply(Withdraw, now) }

// apply applies an event by the table. Whatever happens to a mail that a dispatcher does not claim ends its lease.
func (m Mail) apply(on Event, now time.Time) (Mail, error) {
	cell, err := Transitions.Decide(m.Status, on)
	if err != nil || cell.Next == m.Status {
		return m, err
	}
	m.Status, m.Owner, m.Until = cell.Next, "", nil
	for _, effect := range cell.Effects {
		switch effect {
		case EraseToken:
			m.SealedToken, m.FinishedAt = nil, &now
		case RaiseEpoch:
			m.Epoch++
		}
	}
	return m, nil
}
