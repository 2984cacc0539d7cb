package member

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of an invitation.
type Status string

// The statuses.
const (
	Open     Status = "open"     // its token can be used
	Accepted Status = "accepted" // the invited person is a member
	Revoked  Status = "revoked"  // the owner has deleted it
	Expired  Status = "expired"  // its token was not used in time
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{Open, Accepted, Revoked, Expired}

// Values lists them for the API's description.
func (Status) Values() []Status { return Statuses }

// Event is what happens to an invitation.
type Event string

// The events.
const (
	Accept Event = "accept" // the token is used
	Resend Event = "resend" // a new token, by the owner; also where the same address is invited again
	Revoke Event = "revoke" // the owner deletes it, or adds the person without it
	Expire Event = "expire" // the token has run out
)

// Events lists every event in the order of the docs.
var Events = []Event{Accept, Resend, Revoke, Expire}

// Effects of the table.
const (
	AddMember    = "add the member"
	ReplaceToken = "replace token and expiry"
	SendMail     = "send a mail"
	WithdrawMail = "withdraw the unsent mail"
)

var (
	to   = machine.To[Status]
	gone = machine.Refuse[Status](fault.InvitationNotFound)
)

// Transitions is the status machine of an invitation. An event that needs a token finds no invitation that has ended.
var Transitions = machine.Table[Status, Event]{
	Open: {
		Accept: to(Accepted, AddMember, WithdrawMail), Resend: to(Open, WithdrawMail, ReplaceToken, SendMail),
		Revoke: to(Revoked, WithdrawMail), Expire: to(Expired, WithdrawMail),
	},
	Accepted: {Accept: gone, Resend: gone, Revoke: gone, Expire: gone},
	Revoked:  {Accept: gone, Resend: gone, Revoke: gone, Expire: gone},
	Expired:  {Accept: gone, Resend: to(Open, ReplaceToken, SendMail), Revoke: to(Revoked), Expire: gone},
}
