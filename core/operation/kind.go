package operation

import (
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
)

// Kind is the type of an operation.
type Kind string

// Spec is what the rules need to know about a kind. The capability that does the work states it, once.
type Spec struct {
	Kind Kind
	// Public kinds are listed by the API and produce events. The routes of the others answer when the work is done.
	Public bool
	// Right is what starting or canceling one needs.
	Right account.Action
	// Cancelable reports whether one that runs may still be canceled, because it has changed nothing; nil: never.
	Cancelable func(Operation) bool
	// Logins says that one changes a login. It is open beside those that do not.
	Logins bool
	// BesideLogins permits changes of logins while one is open, because it only reads.
	BesideLogins bool
	// BesidePasswords reports whether passwords may be changed while one is open: it carries them over; nil: never. No role is made
	// or removed meanwhile.
	BesidePasswords func(Operation) bool
	// Driven reports whether one is put down for as long as its callers may stay away; nil: no caller drives any.
	Driven func(Operation) bool
	// Ends says that one which the service begins by itself deletes or shuts out because a time is over.
	Ends bool
	// LoginsUntilBegun permits the same while one is queued, as long as its callers may leave it so.
	LoginsUntilBegun bool
}

// AdmitsLogins reports whether logins may change beside an open operation of the kind.
func (s Spec) AdmitsLogins(o Operation) bool {
	return s.BesideLogins || s.LoginsUntilBegun && o.Status == Queued
}

// AdmitsPasswords reports whether passwords may be changed beside an open operation of the kind.
func (s Spec) AdmitsPasswords(o Operation) bool {
	return s.AdmitsLogins(o) || s.BesidePasswords != nil && s.BesidePasswords(o)
}

// ByTime reports whether an operation of the kind deletes or shuts out because a time is over, and nobody has asked for it.
func (s Spec) ByTime(o Operation) bool { return s.Ends && o.Actor == audit.System }

// Beside are the kinds of open operations beside which logins may change: Always, and UntilBegun while one is queued.
type Beside struct{ Always, UntilBegun []Kind }

// DecideCancel applies a user's request to cancel. A running operation that may already have changed something is refused with
// DATABASE_STATE_CONFLICT.
func (s Spec) DecideCancel(o Operation) (Status, error) {
	if o.Status == Running && (s.Cancelable == nil || !s.Cancelable(o)) {
		return "", fault.New(fault.DatabaseStateConflict, "a running %s operation can no longer be canceled", o.Kind)
	}
	cell, err := Transitions.Decide(o.Status, RequestCancel)
	return cell.Next, err
}
