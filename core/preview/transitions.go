package preview

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Lease is the status of a preview's lease.
type Lease string

// The statuses.
const (
	Active     Lease = "active"     // the pipeline may use and renew it
	Expired    Lease = "expired"    // it has ended, and the service is to delete the preview
	Deleting   Lease = "deleting"   // a delete operation of the preview is open
	Deleted    Lease = "deleted"    // the preview can be recovered until it is purged; its ref is free
	Recovering Lease = "recovering" // a recovery of the preview is open; its ref is taken
)

// Leases lists every status in the order of the docs.
var Leases = []Lease{Active, Expired, Deleting, Deleted, Recovering}

// Values lists those that the API shows, for its description.
func (Lease) Values() []Lease { return []Lease{Active, Expired, Deleting, Deleted} }

// Shown is the status as the API shows it: what is being recovered is deleted until it is recovered.
func (l Lease) Shown() Lease {
	if l == Recovering {
		return Deleted
	}
	return l
}

// Event is what happens to a lease.
type Event string

// The events.
const (
	Extend        Event = "extend"         // the pipeline renews it
	Configure     Event = "configure"      // the pipeline chooses another backup policy
	Expire        Event = "expire"         // its time is over, or it was deleted while another operation was open
	End           Event = "end"            // a delete operation begins
	EndFailed     Event = "end_failed"     // the operation failed or was canceled, and the database is as it was
	Ended         Event = "ended"          // the operation succeeded
	Recover       Event = "recover"        // a recovery begins
	RecoverFailed Event = "recover_failed" // the recovery failed or was canceled
	Recovered     Event = "recovered"      // the recovery succeeded
)

// Events lists every event in the order of the docs.
var Events = []Event{Extend, Configure, Expire, End, EndFailed, Ended, Recover, RecoverFailed, Recovered}

// Effects of the table.
const (
	Renew       = "renew"
	BeginAnew   = "begin a new lease"
	TryLater    = "try to end it later"
	BeginDelete = "begin the deletion"
)

var (
	to       = machine.To[Lease]
	never    = machine.Refuse[Lease](fault.InternalError)
	ended    = machine.Refuse[Lease](fault.PreviewLeaseEnded)
	conflict = machine.Refuse[Lease](fault.PreviewConflict)
)

// Transitions is the machine of leases. A deletion has one outcome, so no preview is deleted twice at a time: while it is open,
// or its outcome is unknown, asking for another one changes nothing.
var Transitions = machine.Table[Lease, Event]{
	Active: {
		Extend: to(Active, Renew), Configure: to(Active), Expire: to(Expired, TryLater), End: to(Deleting, BeginDelete),
		EndFailed: never, Ended: never, Recover: conflict, RecoverFailed: never, Recovered: never,
	},
	Expired: {
		Extend: ended, Configure: to(Expired), Expire: to(Expired, TryLater), End: to(Deleting, BeginDelete),
		EndFailed: never, Ended: never, Recover: conflict, RecoverFailed: never, Recovered: never,
	},
	Deleting: {
		Extend: ended, Configure: conflict, Expire: to(Deleting), End: to(Deleting),
		EndFailed: to(Expired, TryLater), Ended: to(Deleted), Recover: conflict, RecoverFailed: never, Recovered: never,
	},
	Deleted: {
		Extend: ended, Configure: conflict, Expire: to(Deleted), End: to(Deleted),
		EndFailed: never, Ended: never, Recover: to(Recovering), RecoverFailed: never, Recovered: never,
	},
	Recovering: {
		Extend: ended, Configure: conflict, Expire: to(Recovering), End: conflict,
		EndFailed: never, Ended: never, Recover: to(Recovering), RecoverFailed: to(Deleted), Recovered: to(Active, BeginAnew),
	},
}

// Decide applies an event.
func (l Lease) Decide(e Event) (machine.Cell[Lease], error) { return Transitions.Decide(l, e) }
