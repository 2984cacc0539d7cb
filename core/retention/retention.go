// Package retention says how long what is over stays in the metadata, and what stays for longer because something needs it.
package retention

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/core/usage"
)

// Kind is a kind of entries that are deleted when they have been over for long enough.
type Kind string

// The kinds.
const (
	Operations Kind = "operations" // since they ended
	Audit      Kind = "audit"      // entries of the activity log, since they were made
	Keys       Kind = "keys"       // idempotency keys, since they were first used
	Changes    Kind = "changes"    // of logins, since they ended
	Usage      Kind = "usage"      // samples of what databases used, since their hour; bills go with the last sample of their month
	Deliveries Kind = "deliveries" // of webhooks, since they were settled, with their attempts and events; the outbox forgets them
)

// Bounds are how long the entries of a kind stay where nothing else is said, and how long they must at least.
type Bounds struct{ Default, Least time.Duration }

const day = 24 * time.Hour

// kinds has the bounds of every kind. Those of keys are at least what a client that repeats a request may take. Samples stay for
// the 13 months that a year is compared with the one before, and for as long as the bill of the last month is wanted.
var kinds = map[Kind]Bounds{
	Operations: {400 * day, 30 * day},
	Audit:      {400 * day, 30 * day},
	Keys:       {30 * day, 2 * day},
	Changes:    {400 * day, 30 * day},
	Usage:      {400 * day, 62 * day},
	Deliveries: {30 * day, day},
}

// Kinds lists every kind by name.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

// Pruned lists the kinds whose entries are looked at one by one.
func Pruned() []Kind { return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == Deliveries }) }

// Bounds returns the bounds of a kind.
func (k Kind) Bounds() Bounds { return kinds[k] }

// Policy is how long the entries of each kind stay. A kind that is missing has its default.
type Policy map[Kind]time.Duration

// Of returns how long the entries of a kind stay.
func (p Policy) Of(k Kind) time.Duration {
	if d, said := p[k]; said {
		return d
	}
	return kinds[k].Default
}

// Error says what is wrong with how long a kind stays.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return string(e.Kind) + " " + e.Text }

// Check returns an *Error where a kind would not stay for long enough. An idempotency key answers with what its request made, so
// that stays at least as long.
func (p Policy) Check() error {
	for _, k := range Kinds() {
		if p.Of(k) < kinds[k].Least {
			return &Error{k, "must be kept for at least " + Format(kinds[k].Least)}
		}
	}
	if p.Of(Operations) < p.Of(Keys) {
		return &Error{Operations, "must be kept for at least as long as keys, which is " + Format(p.Of(Keys))}
	}
	return nil
}

// longest is longer than any installation lives, and can be counted in nanoseconds.
const longest = 36500 * day

// Parse reads a length of time: days as 400d, or what time.ParseDuration takes.
func Parse(text string) (time.Duration, error) {
	var d time.Duration
	var err error
	if number, days := strings.CutSuffix(text, "d"); days {
		var n uint64
		if n, err = strconv.ParseUint(number, 10, 16); err == nil {
			d = time.Duration(n) * day
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("%q is no length of time such as 400d or 36h, up to %s", text, Format(longest))
	}
	return d, nil
}

// Format writes a length of time as Parse reads it.
func Format(d time.Duration) string {
	if d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// Entry is what is asked of an entry to know whether it may go.
type Entry struct {
	Over   *time.Time // since when it is over; nil: it is not
	Needed bool       // something that stays names it
}

// Gone reports whether an entry goes that was over before a time.
func (e Entry) Gone(before time.Time) bool {
	return e.Over != nil && e.Over.Before(before) && !e.Needed
}

// Needs is what can need an operation beside its age: its database's record and tombstone, nil where there are none, the backups
// that are there, and the uploads.
type Needs struct {
	Database  *database.Record
	Tombstone *deletion.Tombstone
	Backups   []backup.Backup
	Uploads   []upload.Upload
}

// OfOperation is needed while a backup says that it came of it, while an upload waits for it, while the tombstone says that it
// deleted or recovered the database, and while it is the last change of the database's query timeouts.
func OfOperation(o operation.Operation, n Needs) Entry {
	is := func(op id.OperationID) bool { return op == o.ID }
	return Entry{Over: o.FinishedAt, Needed: n.Database != nil && is(n.Database.TimeoutOperation) ||
		n.Tombstone != nil && (is(n.Tombstone.OperationID) || is(n.Tombstone.RecoveryID)) ||
		slices.ContainsFunc(n.Backups, func(b backup.Backup) bool { return is(b.OperationID) }) ||
		slices.ContainsFunc(n.Uploads, func(u upload.Upload) bool { return is(u.OperationID) })}
}

// OfKey is needed while an operation is open that its request made, or that is about the database that its request made.
func OfKey(k idempotency.Record, open []operation.Operation) Entry {
	return Entry{Over: &k.CreatedAt, Needed: slices.ContainsFunc(open, func(o operation.Operation) bool {
		return !o.Status.Final() && (string(o.ID) == k.ResourceID || string(o.DatabaseID) == k.ResourceID)
	})}
}

// OfChange is not needed once it has ended: a role names only a change that has not.
func OfChange(c role.Change) Entry { return Entry{Over: c.EndedAt} }

// OfSample is never needed: what it comes to is in the bill, whose line goes once no sample of its month can be left.
func OfSample(s usage.Sample) Entry { return Entry{Over: &s.Hour} }

// LineGone reports whether a line of a bill goes together with samples of before a time.
func LineGone(l usage.Line, before time.Time) bool { return l.Month.Before(before.Add(-usage.Longest)) }

// OfAudit is never needed: no decision depends on the log.
func OfAudit(e audit.Entry) Entry { return Entry{Over: &e.At} }
