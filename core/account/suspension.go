package account

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Suspension is an operator's decision not to serve an account for now: its keys and its people are refused, and its databases
// take no clients. Nothing is deleted meanwhile, and backups go on. The zero value is that of an account that is served.
type Suspension struct {
	SuspendedAt *time.Time `db:"suspended_at"`
	// SuspendedFor is the operator's reason, which the customer reads; empty unless the account is suspended.
	SuspendedFor string `db:"suspended_for"`
}

// Suspended reports whether the account is suspended.
func (s Suspension) Suspended() bool { return s.SuspendedAt != nil }

// Suspend begins a suspension. One that has begun stays as it is, with its reason.
func (s Suspension) Suspend(reason string, now time.Time) Suspension {
	if s.Suspended() {
		return s
	}
	return Suspension{SuspendedAt: &now, SuspendedFor: reason}
}

// Served returns ACCOUNT_SUSPENDED, with the operator's reason, where the account is suspended. It is for who acts for the
// account: others are told by ErrOwnerSuspended, and not why.
func (s Suspension) Served() error {
	if s.Suspended() {
		return ErrSuspended(s.SuspendedFor)
	}
	return nil
}

// ErrSuspended is the answer to whoever acts for a suspended account.
func ErrSuspended(reason string) error {
	return fault.New(fault.AccountSuspended,
		"the operator of the service has suspended the account: %s; ask the operator to resume it", reason)
}

// ErrOwnerSuspended is the answer to the members of the databases of a suspended account.
func ErrOwnerSuspended() error {
	return fault.New(fault.AccountSuspended, "the operator of the service has suspended the account that the database belongs to")
}
