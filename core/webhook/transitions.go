package webhook

import "github.com/pgherd/pgherd/core/machine"

// Status is the status of an endpoint; the wire shows it as "enabled".
type Status string

// The statuses.
const (
	Enabled  Status = "enabled"
	Disabled Status = "disabled"
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{Enabled, Disabled}

// Event is what happens to an endpoint.
type Event string

// The events.
const (
	AttemptSucceeded    Event = "attempt_succeeded"
	AttemptFailed       Event = "attempt_failed"        // the delivery has attempts left
	ExhaustedBelowLimit Event = "exhausted_below_limit" // the last attempt failed; fewer than DisableAfter in a row
	ExhaustedAtLimit    Event = "exhausted_at_limit"    // the last attempt failed; DisableAfter or more in a row
	Disable             Event = "disable"               // DELETE
	Rotate              Event = "rotate"                // a new secret
)

// Events lists every event in the order of the docs.
var Events = []Event{AttemptSucceeded, AttemptFailed, ExhaustedBelowLimit, ExhaustedAtLimit, Disable, Rotate}

// Effects of the table.
const (
	CountFailure    = "count failure"
	ResetFailures   = "reset failures"
	ReplaceSecret   = "replace secret"
	SetDisabledAt   = "set disabledAt"
	ClearDisabledAt = "clear disabledAt"
)

var to = machine.To[Status]

// Transitions is the state machine of an endpoint. Attempts that were running when it was disabled still count.
var Transitions = machine.Table[Status, Event]{
	Enabled: {
		AttemptSucceeded: to(Enabled, ResetFailures), AttemptFailed: to(Enabled, CountFailure),
		ExhaustedBelowLimit: to(Enabled, CountFailure), ExhaustedAtLimit: to(Disabled, CountFailure, SetDisabledAt),
		Disable: to(Disabled, SetDisabledAt), Rotate: to(Enabled, ReplaceSecret, ResetFailures),
	},
	Disabled: {
		AttemptSucceeded: to(Disabled, ResetFailures), AttemptFailed: to(Disabled, CountFailure),
		ExhaustedBelowLimit: to(Disabled, CountFailure), ExhaustedAtLimit: to(Disabled, CountFailure),
		Disable: to(Disabled), Rotate: to(Enabled, ReplaceSecret, ResetFailures, ClearDisabledAt),
	},
}
