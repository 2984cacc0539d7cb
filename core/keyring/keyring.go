// Package keyring holds what the metadata know of the ring of keys that stored secrets are encrypted with: which keys there are
// and which one encrypts, by their fingerprints, and which hosts have which of them. The keys themselves are never there.
//
// A key is staged first, so that every host can read what it encrypts; then it is promoted, and everything is encrypted again;
// then what it has replaced is retired.
package keyring

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Fingerprint names a key without helping to find it.
type Fingerprint string

// String is short enough for a message, and long enough to distinguish keys.
func (f Fingerprint) String() string { return string(f[:min(len(f), 12)]) }

// Status says what a key is for.
type Status string

const (
	// Staged keys encrypt nothing yet.
	Staged Status = "staged"
	// Primary is the key that encrypts.
	Primary Status = "primary"
	// Old keys encrypt no more, and some stored secret may need them.
	Old Status = "old"
	// Retired keys are needed by nothing.
	Retired Status = "retired"
)

// Statuses lists them in the order of a key's life.
var Statuses = []Status{Staged, Primary, Old, Retired}

// Key is a key by its fingerprint.
type Key struct {
	Fingerprint Fingerprint `db:"fingerprint"`
	Status      Status      `db:"status"`
	Since       time.Time   `db:"since"` // of the status
	// ResealedAt is when all that was stored had been encrypted with this primary; nil while that is not done, or it is none.
	ResealedAt *time.Time `db:"resealed_at"`
}

// Keys are all keys that the metadata know; none where no ring was registered yet.
type Keys []Key

// In returns the keys in a status.
func (k Keys) In(s Status) (list Keys) {
	for _, key := range k {
		if key.Status == s {
			list = append(list, key)
		}
	}
	return list
}

// Primary is the key that encrypts; false where no ring was registered yet.
func (k Keys) Primary() (Key, bool) { return k.only(Primary) }

// Staged is the key that waits to be promoted.
func (k Keys) Staged() (Key, bool) { return k.only(Staged) }

func (k Keys) only(s Status) (Key, bool) {
	if list := k.In(s); len(list) > 0 {
		return list[0], true
	}
	return Key{}, false
}

// Fingerprints lists them.
func (k Keys) Fingerprints() []Fingerprint {
	list := make([]Fingerprint, len(k))
	for i, key := range k {
		list[i] = key.Fingerprint
	}
	return list
}

// Ring is what a ring holds.
type Ring struct {
	Keys []Fingerprint // all of them
	Own  Fingerprint   // the one of these that it encrypts with where nobody has said which
}

// Has reports whether the ring has a key.
func (r Ring) Has(f Fingerprint) bool { return slices.Contains(r.Keys, f) }

// Host is a process with a ring, as it last reported.
type Host struct {
	ID     id.RingHostID
	Name   string
	Keys   []Fingerprint // that it can read with
	Seals  Fingerprint   // the one that it encrypts with
	SeenAt time.Time
}

const (
	// ReportEvery is how often a host reports its keys and reads which one is the primary.
	ReportEvery = 10 * time.Second
	// Trust is how long after a report a host may encrypt: one that was suspended or cut off for longer reports first.
	Trust = 30 * time.Second
	// GoneAfter is when a host that says nothing is taken to be gone. It still counts, because it may come back.
	GoneAfter = time.Minute
	// ForgottenAfter is when a host that is gone no longer counts.
	ForgottenAfter = 24 * time.Hour
	// DefaultSettle is for how long a new primary encrypts until the keys before it are dropped: by then nobody encrypts with those,
	// see Trust, and what was encrypted with them a moment ago is stored.
	DefaultSettle = time.Minute
)

// Live reports whether the host has reported lately. A report from the future means that its clock was wrong.
func (h Host) Live(now time.Time) bool { return now.Sub(h.SeenAt).Abs() <= GoneAfter }

// Has reports whether the host can read what a key has encrypted.
func (h Host) Has(f Fingerprint) bool { return slices.Contains(h.Keys, f) }

// NotReadyError says which hosts keep a change of the ring waiting. Waiting may help.
type NotReadyError struct {
	What  string // "have the staged key 0123456789ab"
	Hosts []Host
	Now   time.Time
}

// Error names the hosts and what to do.
func (e *NotReadyError) Error() string {
	gone := false
	names := make([]string, len(e.Hosts))
	for i, h := range e.Hosts {
		names[i] = fmt.Sprintf("%q", h.Name)
		if !h.Live(e.Now) {
			gone = true
			names[i] += fmt.Sprintf(" (last heard of at %s)", h.SeenAt.UTC().Format(time.RFC3339))
		}
	}
	text := fmt.Sprintf("hosts that have not said that they %s: %s; copy the ring's file to them, each reads it again within %s",
		e.What, strings.Join(names, ", "), ReportEvery)
	if gone {
		text += "; --forget NAME disregards one that is gone for good"
	}
	return text
}

// AllHave returns a NotReadyError unless every host has a key.
func AllHave(hosts []Host, f Fingerprint, now time.Time) error {
	return ready(hosts, "have the staged key "+f.String(), now, func(h Host) bool { return h.Has(f) })
}

// AllSealWith returns a NotReadyError unless every host encrypts with a key.
func AllSealWith(hosts []Host, f Fingerprint, now time.Time) error {
	return ready(hosts, "encrypt with the primary key "+f.String(), now, func(h Host) bool { return h.Seals == f && h.Has(f) })
}

func ready(hosts []Host, what string, now time.Time, is func(Host) bool) error {
	waiting := slices.DeleteFunc(slices.Clone(hosts), is)
	if len(waiting) == 0 {
		return nil
	}
	return &NotReadyError{What: what, Hosts: waiting, Now: now}
}
