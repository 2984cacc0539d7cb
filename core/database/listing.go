package database

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
)

// Listing says which of the databases that somebody sees a list has, and in which order. The zero value: all, the oldest first.
// The store has the same rules in SQL; its conformance suite holds the two together.
type Listing struct {
	Text        string       // of the name or the display name, whatever the case of its letters A to Z
	Statuses    []Status     // none: all
	Environment *Environment // nil: any; an empty one: none
	Whose       Whose
	By          Order
	Descending  bool
	Backups     bool // each entry says when its newest verified backup was made
}

// Whose says by their owners which databases a list has.
type Whose string

// What can be asked for.
const (
	Everybodys Whose = ""
	Own        Whose = "own"    // of the viewer's account
	Shared     Whose = "shared" // of others
)

// Order is what a list is sorted by, and then by ID.
type Order string

// The orders.
const (
	ByCreation Order = ""
	ByName     Order = "name" // letter by letter, as names have no others than those of ASCII
	BySize     Order = "size"
)

// maxText is how long a text to look for may be: as long as a display name.
const maxText = 64

// Checked is the listing as a client has asked for it, with its text trimmed. VALIDATION_ERROR on "text", "status",
// "environment", "whose" or "sort".
func (l Listing) Checked() (_ Listing, err error) {
	if l.Text, err = fault.Label("text", l.Text, 0, maxText); err != nil {
		return l, err
	}
	for _, s := range l.Statuses {
		if _, err := fault.OneOf("status", string(s), Status("").Values()...); err != nil {
			return l, err
		}
	}
	if l.Environment != nil && *l.Environment != "" {
		if _, err := ParseEnvironment(string(*l.Environment)); err != nil {
			return l, err
		}
	}
	if l.Whose != Everybodys {
		if _, err := fault.OneOf("whose", string(l.Whose), Own, Shared); err != nil {
			return l, err
		}
	}
	if l.By != ByCreation {
		_, err = fault.OneOf("sort", string(l.By), ByName, BySize)
	}
	return l, err
}

// Has reports whether a database that is seen with a standing is in the list.
func (l Listing) Has(r Record, s account.Standing) bool {
	text := ascii.Lower(l.Text)
	named := strings.Contains(r.Name, text) || strings.Contains(ascii.Lower(r.DisplayName), text)
	return named && (len(l.Statuses) == 0 || slices.Contains(l.Statuses, r.Status)) &&
		(l.Environment == nil || r.Environment == *l.Environment) &&
		(l.Whose == Everybodys || (l.Whose == Own) == (s == account.Owner))
}

// Key is what the list sorts a database by, as a text that sorts alike; empty where that is its creation.
func (l Listing) Key(r Record) string {
	switch l.By {
	case ByName:
		return r.Name
	case BySize:
		return fmt.Sprintf("%019d", r.SizeBytes)
	case ByCreation:
	}
	return ""
}

// IsKey reports whether a text may be the Key of a database.
func (l Listing) IsKey(text string) bool {
	switch l.By {
	case ByName:
		return text != ""
	case BySize:
		n, err := strconv.ParseInt(text, 10, 64)
		return err == nil && n >= 0 && l.Key(Record{SizeBytes: n}) == text
	case ByCreation:
	}
	return text == ""
}
