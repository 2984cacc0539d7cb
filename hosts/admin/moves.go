package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// forwardFor is for how long a server sends on who still comes for a database that it has left, where the operator says nothing.
const forwardFor = 7 * 24 * time.Hour

const forwardUsage = "for how long the server that is left sends on who still comes there; 0: not at all"

func (m *metadata) databaseMove() *cobra.Command {
	var to, reason string
	var wait bool
	q := moves.Request{}
	cmd := &cobra.Command{
		Use: "move", Short: "move a database to another server, while it serves",
		Long: "Move a database to another server, with its ID, name, passwords, roles, grants, allowlist, settings and backups. It\n" +
			"serves meanwhile, and is closed for less than a second at the end; then its host is the other server's. Where\n" +
			"PostgreSQL cannot follow its changes, as database movable says, --closed dumps and loads it, and customers are kept\n" +
			"out for that long. Until the database is the other server's, operation cancel leaves it where it was.",
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", called[id.ServerID]())
	f.BoolVar(&q.Closed, "closed", false, "keep customers out, dump and load")
	f.DurationVar(&q.Forward, "forward", forwardFor, forwardUsage)
	f.BoolVar(&wait, "wait", false, waitUsage)
	f.StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "to", "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (_ output, err error) {
			q.DatabaseID = db
			if q.To, err = find[id.ServerID](ctx, o, "to", to); err != nil {
				return nil, err
			}
			found, err := o.MoveDatabase(ctx, q, operation.Order{By: person(), Reason: reason})
			if err == nil && wait {
				found, err = waitFor(ctx, cmd, o, found.ID)
			}
			return operationRow(found), err
		})
}

func (m *metadata) databaseMovable() *cobra.Command {
	cmd := &cobra.Command{
		Use: "movable", Short: "say what is in the way of moving a database while it serves",
		Long: "Say what is in the way of moving a database while it serves, each obstacle with the object that it is about, and for\n" +
			"how long a move with --closed would keep customers out, as estimated from its size.",
	}
	return onID(m, cmd, "database", func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
		found, err := o.Movable(ctx, db)
		obstacles := tableOf(found.Obstacles, func(o command.Obstacle) row {
			return row{{"kind", o.Kind}, {"what", moves.ObstacleText(o.Kind)}, {"object", some(o.Object)}}
		})
		if err != nil {
			return nil, err
		}
		last, err := o.Rehearsals(ctx, db, found.Movable)
		if err != nil {
			return nil, err
		}
		rehearsed, err := rehearsalTable(last)
		return row{
			{"databaseId", db}, {"name", found.Record.Name}, {"movable", len(found.Obstacles) == 0},
			{"size", terminal.Size(found.SizeBytes)}, {"closedSeconds", int(found.ClosedFor.Seconds())},
			{"obstacles", obstacles}, {"more", found.More}, {"rehearsals", rehearsed},
		}, err
	})
}
