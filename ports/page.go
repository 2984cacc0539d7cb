package ports

import (
	"encoding/base64"
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

// Position is where an entry stands in a list: every list is sorted by time, then by ID, in one direction.
type Position struct {
	At time.Time
	ID string
}

// Cursor writes a position as the opaque text that clients hand back.
func (p Position) Cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMicro(), 36) + "." + p.ID))
}

// ParseCursor reads what Cursor wrote. Anything else is VALIDATION_ERROR on "cursor".
func ParseCursor(s string) (*Position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	at, id, ok := strings.Cut(string(raw), ".")
	micros, numErr := strconv.ParseInt(at, 36, 64)
	if err != nil || !ok || numErr != nil || id == "" || len(id) > 64 {
		return nil, fault.Invalid("cursor", "is not a cursor that this list returned")
	}
	return &Position{At: time.UnixMicro(micros).UTC(), ID: id}, nil
}
