// Package doctor compares what a server has with what the metadata say of it. It is pure: who calls it has asked both sides.
package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Finding is one difference.
type Finding struct {
	Code       Code
	DatabaseID id.DatabaseID // empty where it is about none
	// Subject is what it is about: a role, a file, an entry of the pooler.
	Subject string
	// Want and Has say how it should be and how it is; empty where there is nothing to say. Neither has a secret.
	Want, Has string

	// What the repair is done to, where it is neither the database nor the server.
	OperationID id.OperationID
	Epoch       int64
	Upload      id.UploadID
	Filename    backup.Filename
	// NoRepair keeps one from being repaired whose kind could be.
	NoRepair bool
}

// Kind is what is known of findings of its code.
func (f Finding) Kind() Kind { return kinds[f.Code] }

// Repair is what would be done about it.
func (f Finding) Repair() Repair {
	if f.NoRepair {
		return Nothing
	}
	return f.Kind().Repair
}

// String is the finding in a sentence.
func (f Finding) String() string {
	text := f.Kind().Says
	if f.Subject != "" {
		text = f.Subject + ": " + text
	}
	switch {
	case f.Want != "" && f.Has != "":
		text += fmt.Sprintf(" (%s instead of %s)", f.Has, f.Want)
	case f.Want != "":
		text += fmt.Sprintf(" (wanted: %s)", f.Want)
	case f.Has != "":
		text += fmt.Sprintf(" (%s)", f.Has)
	}
	return text
}

// Same reports whether two findings say the same.
func (f Finding) Same(g Finding) bool {
	return f.Code == g.Code && f.DatabaseID == g.DatabaseID && f.Subject == g.Subject && f.Want == g.Want && f.Has == g.Has
}

// Lasting are the findings of a look that another one had too: what changes between two looks is work under way.
func Lasting(before, now []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(now), func(f Finding) bool { return !slices.ContainsFunc(before, f.Same) })
}

// Sort puts findings into a fixed order.
func Sort(list []Finding) {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.DatabaseID, b.DatabaseID), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
}
