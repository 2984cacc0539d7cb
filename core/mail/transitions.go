package mail

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of a mail.
type Status string

// The statuses of a mail.
const (
	Pending   Status = "pending"   // waits for its next attempt
	Sending   Status = "sending"   // a dispatcher holds it under a lease
	Sent      Status = "sent"      // final: the mail server has taken it
	Failed    Status = "failed"    // final: refused for good, or no attempt is left
	Withdrawn Status = "withdrawn" // final: its invitation ended, or got another token
)

// Statuses lists them in the order of the docs.
var Statuses = []Status{Pending, Sending, Sent, Failed, Withdrawn}

// Final reports whether there will be no further attempt.
func (s Status) Final() bool { return s == Sent || s == Failed || s == Withdrawn }

// Event is what happens to a mail.
type Event string

// The events of a mail.
const (
	Claim    Event = "claim"    // a dispatcher takes or retakes it, with a higher epoch
	Deliver  Event = "deliver"  // the mail server has taken it
	Retry    Event = "retry"    // the attempt failed; there will be another
	GiveUp   Event = "give_up"  // the attempt failed; there will be no other
	Withdraw Event = "withdraw" // its invitation ended, or got another token
)

// Events lists them in the order of the docs.
var Events = []Event{Claim, Deliver, Retry, GiveUp, Withdraw}

// Effects of the table.
const (
	RaiseEpoch      = "raise epoch"
	ScheduleAttempt = "schedule attempt"
	EraseToken      = "erase token"
)

var (
	to = machine.To[Status]
	no = machine.Refuse[Status](fault.InternalError)
)

// Transitions is the machine of a mail. Impossible transitions are INTERNAL_ERROR: the lease's epoch stops dispatchers before
// they get there.
var Transitions = machine.Table[Status, Event]{
	Pending: {
		Claim: to(Sending, RaiseEpoch), Deliver: no, Retry: no, GiveUp: no, Withdraw: to(Withdrawn, EraseToken),
	},
	Sending: {
		Claim: to(Sending, RaiseEpoch), Deliver: to(Sent, EraseToken), Retry: to(Pending, ScheduleAttempt),
		GiveUp: to(Failed, EraseToken), Withdraw: to(Withdrawn, EraseToken, RaiseEpoch),
	},
	Sent:      {Claim: no, Deliver: no, Retry: no, GiveUp: no, Withdraw: to(Sent)},
	Failed:    {Claim: no, Deliver: no, Retry: no, GiveUp: no, Withdraw: to(Failed)},
	Withdrawn: {Claim: no, Deliver: no, Retry: no, GiveUp: no, Withdraw: to(Withdrawn)},
}
