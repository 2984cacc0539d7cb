package ports

import "context"

type awaited struct{}

// Awaited marks a context whose work a request waits for. A store that does not answer tells that work so soon,
// with ErrUnavailable; other work is patient.
func Awaited(ctx context.Context) context.Context { return context.WithValue(ctx, awaited{}, true) }

// IsAwaited reports whether a context was marked so.
func IsAwaited(ctx context.Context) bool { return ctx.Value(awaited{}) != nil }
