package httpapi

import (
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
)

// instant is a time as the API writes it: UTC, ISO 8601.
func instant(t time.Time) time.Time { return t.UTC() }

func instantOrNull(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// What the caller's key and the pipeline have found, and what the path names after that.
func callerOf(r *serve.Request) access.Caller    { return r.Caller }
func databaseOf(r *serve.Request) access.Reached { return r.Target.(access.Reached) }
func filenameOf(r *serve.Request) backup.Filename {
	return backup.Filename(r.Param(serve.FilenameParameter))
}

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
