package ports

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Page bounds a list. The zero value asks for everything.
type Page struct {
	Limit int       // 0: no limit
	After *Position // the last entry of the page before; nil for the first page
}

// Beyond asks for one entry more than the page has, to know whether the list goes on: see Cut.
func (p Page) Beyond() Page {
	if p.Limit > 0 {
		p.Limit++
	}
	return p
}

// Cut is the page of a list that was read with p.Beyond, and the position of its last entry where the list goes on.
func Cut[T any](list []T, p Page, position func(T) Position) ([]T, *Position) {
	if p.Limit == 0 || len(list) <= p.Limit {
		return list, nil
	}
	list = list[:p.Limit]
	last := position(list[p.Limit-1])
	return list, &last
}

// Position is an entry's place in a list. Every list is sorted by time or, where the entries have a Key, by that, and then by ID,
// both in the same direction.
type Position struct {
	At  time.Time
	Key string // an entry that has one has no At
	ID  string
}

// Cursor encodes a position as an opaque text, which clients send back.
func (p Position) Cursor() string {
	by := keyed + p.Key
	if p.Key == "" {
		by = strconv.FormatInt(p.At.UnixMicro(), 36)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(by + "." + p.ID))
}

// keyed is what keys begin with in a cursor, and times do not.
const keyed = "~"

// A cursor's time must be within the range of every store, its ID may only have characters of IDs and file names, and its key
// those of names and numbers.
var (
	lastInstant = time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC)
	cursorID    = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)
	cursorKey   = regexp.MustCompile(`^[0-9a-z-]{1,64}$`)
)

// ParseCursor decodes a cursor. Anything that Cursor did not produce is VALIDATION_ERROR on "cursor".
func ParseCursor(s string) (*Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	by, id, _ := strings.Cut(string(raw), ".")
	p, ok := parsePlace(by)
	if p.ID = id; err != nil || !ok || !cursorID.MatchString(id) || p.Cursor() != s {
		return nil, ErrCursor()
	}
	return &p, nil
}

// parsePlace is a position without its ID.
func parsePlace(by string) (p Position, ok bool) {
	if key, is := strings.CutPrefix(by, keyed); is {
		return Position{Key: key}, cursorKey.MatchString(key)
	}
	micros, err := strconv.ParseInt(by, 36, 64)
	p.At = time.UnixMicro(micros).UTC()
	return p, err == nil && micros >= 0 && p.At.Before(lastInstant)
}

// ErrCursor is the refusal of a position that is none of the list's.
func ErrCursor() error { return fault.Invalid("cursor", "is not a cursor that this list returned") }
