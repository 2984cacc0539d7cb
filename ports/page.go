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

// Position is an entry's place in a list. Every list is sorted by time, then by ID, both in the same direction.
type Position struct {
	At time.Time
	ID string
}

// Cursor encodes a position as an opaque text, which clients send back.
func (p Position) Cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMicro(), 36) + "." + p.ID))
}

// A cursor's time must be within the range of every store, and its ID may only have characters of IDs and file names.
var (
	lastInstant = time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC)
	cursorID    = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)
)

// ParseCursor decodes a cursor. Anything that Cursor did not produce is VALIDATION_ERROR on "cursor".
func ParseCursor(s string) (*Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	at, id, _ := strings.Cut(string(raw), ".")
	micros, numErr := strconv.ParseInt(at, 36, 64)
	p := Position{At: time.UnixMicro(micros).UTC(), ID: id}
	if err != nil || numErr != nil || !cursorID.MatchString(id) || micros < 0 || !p.At.Before(lastInstant) || p.Cursor() != s {
		return nil, fault.Invalid("cursor", "is not a cursor that this list returned")
	}
	return &p, nil
}
