package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// moves are about databases that move, and those that have moved.
func (m Measured) moves() *family {
	shut := describe("pgherd_moves_longest_shut_seconds",
		"For how long a move keeps customers out of a database, by the server that has it; the longest, and 0 where none does. "+
			"closed is true of moves that were ordered so.", "server", "closed")
	all := describe("pgherd_forwards", "Databases that a server has left, and for which it sends on who still comes.", "server")
	untold := describe("pgherd_forwards_untold", "Of these, those of which the server could not be told what it is to do.", "server")
	return &family{
		name: "moves", all: []*prometheus.Desc{shut, all, untold},
		read: func(ctx context.Context, now time.Time, set setter) error {
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				servers, err := tx.Servers().List(ctx)
				if err != nil {
					return err
				}
				longest, err := shutFor(ctx, tx, now)
				if err != nil {
					return err
				}
				forwards, err := tx.Forwards().List(ctx)
				count, failing := map[id.ServerID]int{}, map[id.ServerID]int{}
				for _, f := range forwards {
					count[f.ServerID]++
					if f.Failures > 0 {
						failing[f.ServerID]++
					}
				}
				for _, s := range servers {
					set(shut, longest[shutting{s.ID, false}], s.Name, "false")
					set(shut, longest[shutting{s.ID, true}], s.Name, "true")
					set(all, float64(count[s.ID]), s.Name)
					set(untold, float64(failing[s.ID]), s.Name)
				}
				return err
			})
		},
	}
}

// shutting are the moves of the databases of a server.
type shutting struct {
	on     id.ServerID
	closed bool
}

// shutFor is how long moves keep customers out, in seconds.
func shutFor(ctx context.Context, tx ports.Tx, now time.Time) (map[shutting]float64, error) {
	open, err := tx.Operations().Find(ctx, ports.OperationFilter{
		Kind: move.Kind, Statuses: []operation.Status{operation.Running},
	}, ports.Page{})
	longest := map[shutting]float64{}
	for _, o := range open {
		in, err := operation.Decode[move.Input](o.Input)
		if err != nil {
			return nil, err
		}
		of := shutting{o.ServerID, in.Closed}
		longest[of] = max(longest[of], since(now, in.ShutSince(move.Machine.Of(o.Operation))))
	}
	return longest, err
}
