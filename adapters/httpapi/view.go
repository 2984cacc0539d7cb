package httpapi

import (
	"time"

	"github.com/pgherd/pgherd/core/controlplane/access"
)

const gzipType = "application/gzip"

// instant is a time as the API writes it: UTC, ISO 8601.
func instant(t time.Time) time.Time { return t.UTC() }

func instantOrNull(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// caller and database are what the caller's key and the pipeline have found.
func (r *Request) caller() access.Caller    { return r.Caller }
func (r *Request) database() access.Reached { return r.Target.(access.Reached) }

// nullIfZero shows the zero value as null.
func nullIfZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// mapped is one page's or list's entries as they are shown.
func mapped[E, V any](entries []E, view func(E) V) []V {
	out := make([]V, len(entries))
	for i, e := range entries {
		out[i] = view(e)
	}
	return out
}
