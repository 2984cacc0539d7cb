package wiring

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/ports"
)

// kept is what is deleted when it has been over for long enough, by kind.
func (m Measured) kept() *family {
	rows := describe("pgherd_metadata_rows", "Entries of a kind in the metadata, as PostgreSQL last estimated.", "kind")
	size := describe("pgherd_metadata_bytes", "What the entries of a kind take in the metadata database, with indexes.", "kind")
	oldest := describe("pgherd_metadata_oldest_seconds",
		"For how long the oldest entry of a kind has been over; 0 where none is.", "kind")
	return &family{
		name: "kept", all: []*prometheus.Desc{rows, size, oldest},
		read: func(ctx context.Context, now time.Time, set setter) error {
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				list, err := tx.Retention().Stored(ctx)
				for _, s := range list {
					set(rows, float64(s.Rows), string(s.Kind))
					set(size, float64(s.Bytes), string(s.Kind))
					set(oldest, since(now, s.Oldest), string(s.Kind))
				}
				return err
			})
		},
	}
}
