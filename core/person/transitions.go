package person

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of a session.
type Status string

// The statuses.
const (
	AwaitsFactor Status = "awaits_factor" // the password was right, and the second factor is missing: it reaches nothing
	Open         Status = "open"          // the person is logged in
	Ended        Status = "ended"         // by a log-out, another person's or an operator's hand, too many wrong codes, or time
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{AwaitsFactor, Open, Ended}

// Event is what happens to a session.
type Event string

// The events.
const (
	Prove  Event = "prove"  // the second factor, or once more password or factor
	Miss   Event = "miss"   // a wrong proof
	End    Event = "end"    // a log-out, the end of all sessions of a person, or the last wrong proof
	Expire Event = "expire" // nobody used it for long enough, or it is too old
)

// Events lists every event in the order of the docs.
var Events = []Event{Prove, Miss, End, Expire}

// ReplaceToken is the effect of a proof: a token that somebody knew before is worth nothing.
const ReplaceToken = "replace the token"

var (
	to   = machine.To[Status]
	gone = machine.Refuse[Status](fault.Unauthorized)
)

// Transitions is the status machine of a session.
var Transitions = machine.Table[Status, Event]{
	AwaitsFactor: {Prove: to(Open, ReplaceToken), Miss: to(AwaitsFactor), End: to(Ended), Expire: to(Ended)},
	Open:         {Prove: to(Open, ReplaceToken), Miss: to(Open), End: to(Ended), Expire: to(Ended)},
	Ended:        {Prove: gone, Miss: gone, End: gone, Expire: gone},
}
