package operation

import (
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
)

// Order is an operator's word about an operation, or a change of a login, that does not end by itself.
type Order struct {
	By     string // the person
	Reason string
	// ServerGone says that the server is gone for good: nothing is asked of it, and nothing is undone on it.
	ServerGone bool
}

// longestReason is in characters.
const longestReason = 300

// CheckReason demands a reason of what an operator overrides: VALIDATION_ERROR on "reason".
func CheckReason(text string) error {
	trimmed, err := fault.Label("reason", text, 1, longestReason)
	if err == nil && trimmed != text {
		err = fault.Invalid("reason", "must not begin or end with blanks")
	}
	return err
}

// Check demands a reason: VALIDATION_ERROR on "reason".
func (o Order) Check() error { return CheckReason(o.Reason) }

// Ordered is the part of an operation's input that says on whose order it is, and why.
func (o Order) Ordered() Ordered { return Ordered{Operator: o.By, Reason: o.Reason} }

// Ordered is in the inputs of operations that operators can ask for, too; empty where a customer has, or the service itself.
type Ordered struct {
	Operator string `json:"operator,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Details are what the activity log says of it: nothing where it is empty.
func (o Ordered) Details() audit.Details {
	if o == (Ordered{}) {
		return nil
	}
	return audit.Details{audit.OperatorDetail: o.Operator, audit.ReasonDetail: o.Reason}
}

// Cause is what the operation fails with.
func (o Order) Cause() *fault.Error {
	return fault.New(fault.AgentError, "ended by the operators of the service: %s", o.Reason)
}

// AdmitsRetry decides whether an operator may have an operation taken up at once: DATABASE_STATE_CONFLICT where it has ended, a
// worker has it, or its callers drive it.
func (s Spec) AdmitsRetry(o Operation, now time.Time) error {
	if err := o.AtRest(now); err != nil {
		return err
	}
	if s.Driven != nil && s.Driven(o) && now.Before(o.NotBefore) {
		return fault.New(fault.DatabaseStateConflict, "its callers drive the operation; where none comes it ends by itself at %s",
			o.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// AtRest returns DATABASE_STATE_CONFLICT unless the operation is open and nobody works on it: then an operator may end it.
func (o Operation) AtRest(now time.Time) error {
	switch {
	case o.Status.Final():
		return fault.New(fault.DatabaseStateConflict, "the operation has ended: it is %s", o.Status)
	case o.Until != nil && now.Before(*o.Until):
		return fault.New(fault.DatabaseStateConflict, "a worker has the operation, until %s at least: try again then",
			o.Until.UTC().Format(time.RFC3339))
	}
	return nil
}
