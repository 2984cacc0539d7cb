package recovery

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
)

// The routes that keys of comparisons and searches belong to.
const (
	ComparisonRoute = "POST /comparisons"
	SearchRoute     = "POST /searches"
)

// Between asks how what a database held at two moments differs.
type Between struct {
	From, To time.Time       // whatever the order they are asked for in, From is the earlier
	Key      idempotency.Key // empty: every request is another comparison
}

// Check refuses moments that are one: VALIDATION_ERROR on "to".
func (b Between) Check() error {
	if !b.To.After(b.From) {
		return fault.Invalid("to", "must be later than from")
	}
	return nil
}

// Fingerprint identifies what the request asks for.
func (b Between) Fingerprint(of id.DatabaseID) idempotency.Fingerprint {
	return idempotency.NewFingerprint(string(of), Text(b.From), Text(b.To))
}

// BetweenInput is the input of a comparison.
type BetweenInput struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Find asks from which second on the answer of a query fulfils a comparison.
type Find struct {
	Query string
	Until string
	From  *time.Time // nil: the beginning of the window
	To    *time.Time // nil: now
	Key   idempotency.Key
}

// mostQuery is how long a query may be, in bytes.
const mostQuery = 16 << 10

// Check refuses what cannot be: VALIDATION_ERROR on "query", "until" or "to".
func (f Find) Check() error {
	text := utf8.ValidString(f.Query) && !strings.ContainsRune(f.Query, 0)
	if !text || strings.TrimSpace(f.Query) == "" || len(f.Query) > mostQuery {
		return fault.Invalid("query", "must be a statement of at most %d bytes", mostQuery)
	}
	if _, err := ParseUntil(f.Until); err != nil {
		return fault.Invalid("until", "%s", err.Error())
	}
	if f.From != nil && f.To != nil && !f.To.After(*f.From) {
		return fault.Invalid("to", "must be later than from")
	}
	return nil
}

// Fingerprint identifies what the request asks for.
func (f Find) Fingerprint(of id.DatabaseID) idempotency.Fingerprint {
	return idempotency.NewFingerprint(string(of), f.Query, f.Until, textOf(f.From), textOf(f.To))
}

func textOf(at *time.Time) string {
	if at == nil {
		return ""
	}
	return Text(*at)
}

// FindInput is the input of a search.
type FindInput struct {
	Question Question  `json:"-"` // it is sealed; see operation.Operation.SealedInput
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Gaps     []Gap     `json:"gaps,omitempty"` // of the window when it was asked for
}
