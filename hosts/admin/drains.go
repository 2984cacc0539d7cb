package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
)

func (m *metadata) serverDrain() *cobra.Command {
	var to, reason string
	var wait, partly, stop bool
	var forward time.Duration
	d := move.Drain{}
	cmd := &cobra.Command{
		Use: "drain", Short: "move all databases of a server to others, some at a time",
		Long: "Move all databases of a server to others, as database move does. The server takes no new ones from then on. First\n" +
			"the room is counted: it prints where each database would go, and does nothing where one fits nowhere, unless --partly is\n" +
			"given. The batch hosts do the work, so that the command may end, or be run again with other choices; --stop has no\n" +
			"further database moved. What is tried three times without success stays, and server drain says why.",
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "the one "+called[id.ServerID]()+" that takes them; by default any that has room")
	f.IntVar(&d.AtOnce, "at-once", move.DefaultAtOnce, fmt.Sprintf("how many databases move at a time, up to %d", move.MostAtOnce))
	f.BoolVar(&d.Closed, "closed", false, "move those closed that cannot be moved while they serve; see database movable")
	f.DurationVar(&forward, "forward", forwardFor, forwardUsage+"; with --remove, by default not at all")
	f.BoolVar(&partly, "partly", false, "move those that fit, although others fit nowhere")
	f.BoolVar(&d.Remove, "remove", false, "remove the server once nothing is on it")
	f.BoolVar(&wait, "wait", false, "wait for the end, and say on the way what is left")
	f.BoolVar(&stop, "stop", false, "have no further database moved")
	f.StringVar(&reason, "reason", "", "why; the activity log shows it to customers")
	cmd.MarkFlagsMutuallyExclusive("stop", "remove")
	return onID(m, cmd, "server", func(ctx context.Context, o *operator.Operator, of id.ServerID) (_ output, err error) {
		if stop {
			stopped, err := o.StopDrain(ctx, of, operation.Order{By: person(), Reason: reason})
			return drainRow(moves.Drainage{Drain: stopped}), err
		}
		if d.To, err = findAny[id.ServerID](ctx, o, "to", to); err != nil {
			return nil, err
		}
		if d.Remove && !cmd.Flags().Changed("forward") {
			forward = 0
		}
		d.ServerID, d.By, d.Reason, d.Forward = of, person(), reason, int64(forward/time.Second)
		plan, err := o.DrainServer(ctx, d, partly)
		shown := tableOf(plan, plannedRow).only("name", "to", "why")
		if err != nil && len(plan) > 0 {
			return nil, errors.Join(m.show(cmd, shown), err)
		}
		if err == nil && wait {
			return waitDrained(ctx, cmd, o, of)
		}
		return shown, err
	})
}

func plannedRow(p move.Planned) row {
	return row{{"databaseId", p.Record.ID}, {"name", p.Record.Name}, {"to", some(p.To.Name)}, {"why", some(p.Why)}}
}

// errNotDrained says that a drain has ended with databases left.
var errNotDrained = errors.New("databases are left on the server: see why")

// waitDrained waits for the end of a drain, and tells how many databases are left.
func waitDrained(ctx context.Context, cmd *cobra.Command, o *operator.Operator, of id.ServerID) (output, error) {
	for told := -1; ; {
		all, err := o.Drains(ctx)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(d moves.Drainage) bool { return d.ServerID == of })
		if at < 0 {
			return row{{"serverId", of}, {"drain", move.Drained}, {"removed", true}}, nil
		}
		switch now := all[at]; {
		case now.State == move.Drained:
			return drainRow(now), nil
		case now.State != move.Draining:
			return drainRow(now), errNotDrained
		case len(now.Left) != told:
			told = len(now.Left)
			cmd.PrintErrf("%d left\n", told)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(waitPoll):
		}
	}
}

func drainRow(d moves.Drainage) row {
	left := tableOf(d.Left, func(s move.Remaining) row {
		return row{{"databaseId", s.ID}, {"name", s.Name}, {"moving", s.Moving}, {"tries", s.Item.Tries}, {"why", some(s.Item.Why)}}
	})
	return row{{"serverId", d.ServerID}, {"drain", d.State}, {"left", left}, {"why", some(d.Why)}, {"endedAt", d.EndedAt}}
}

// drainOf says how far the drain of a server is; nil: it was never drained, or takes new databases again since.
func drainOf(all []moves.Drainage, of server.Server) any {
	at := slices.IndexFunc(all, func(d moves.Drainage) bool { return d.ServerID == of.ID })
	if at < 0 || of.Enabled && all[at].State != move.Draining {
		return nil
	}
	return fmt.Sprintf("%s, %d left", all[at].State, len(all[at].Left))
}
