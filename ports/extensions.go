package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// Qualifications keeps what the trials of extensions on database servers have shown.
type Qualifications interface {
	// Put stores a trial in place of the last one of the same extension on the same server. A server that does not exist is
	// ErrNoRow.
	Put(ctx context.Context, q extension.Qualification) error
	// Of returns the trials on a server, by extension.
	Of(ctx context.Context, server id.ServerID) ([]extension.Qualification, error)
}
