package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// errSomeLeft says that not every database could be taken.
var errSomeLeft = errors.New("some databases stay with the server that is gone: see the column why, and run the command again")

func (m *metadata) serverRecover() *cobra.Command {
	var on, first []string
	var storage, reason string
	var wait bool
	someLeft := false
	cmd := &cobra.Command{
		Use: "recover", Short: "make the databases of a server that is gone for good anew on others",
		Long: "Make the databases of a server that is gone for good anew on other servers, with their IDs, names, passwords, roles,\n" +
			"grants, members and backups: from its archive, as they were last, or else from the newest verified backup of each. What\n" +
			"is open on it is ended first. Each database is an operation of its own, whose result says what was lost; see operation\n" +
			"list --kind rebuild. Run it again for those that are left.",
	}
	f := cmd.Flags()
	f.StringSliceVar(&on, "on", nil, "names or IDs of the servers that take the databases, each as many as it has room for")
	f.StringSliceVar(&first, "first", nil, "names or IDs of databases that come before the others, in this order")
	f.StringVar(&storage, "storage", "", "where the server kept backups and archive: the prefix in the bucket or the folder, as "+
		"the agents of --on see it; by default where its agent said")
	f.BoolVar(&wait, "wait", false, "wait for the end of all, say on the way how many are left, and show those that failed")
	f.StringVar(&reason, "reason", "", "why; the activity log shows it to customers")
	onID(m, m.asking(required(cmd, "on", "reason")), "server",
		func(ctx context.Context, o *operator.Operator, of id.ServerID) (output, error) {
			q := operator.Recovery{Server: of, Storage: storage, Order: operation.Order{By: person(), Reason: reason}}
			for _, text := range on {
				server, err := find[id.ServerID](ctx, o, "on", text)
				if err != nil {
					return nil, err
				}
				q.On = append(q.On, server)
			}
			for _, text := range first {
				db, err := find[id.DatabaseID](ctx, o, "first", text)
				if err != nil {
					return nil, err
				}
				q.First = append(q.First, db)
			}
			s, n, err := o.Server(ctx, of)
			if err != nil {
				return nil, err
			}
			about := row{{"serverId", s.ID}, {"name", s.Name}, {"databases", n.Databases}, {"on", strings.Join(on, ", ")}}
			if err := m.confirm(cmd, s.Name, "Is it gone for good, and are they made anew?", about); err != nil {
				return nil, err
			}
			list, left, err := o.RecoverServer(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, l := range left {
				printLeft(cmd, l.On.Name, l.Until != nil, l.Why, l.WhyNoBackups)
			}
			if wait {
				if err := waitRebuilt(ctx, cmd, o.Operation, list); err != nil {
					return nil, err
				}
			}
			someLeft = slices.ContainsFunc(list, func(r operator.Recovering) bool { return r.Err != nil })
			return tableOf(list, recoveringRow), nil
		})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil || !someLeft {
			return err
		}
		return errSomeLeft
	}
	return cmd
}

// printLeft says what a server found that cannot be used.
func printLeft(cmd *cobra.Command, on string, archive bool, why, whyNoBackups string) {
	if !archive {
		cmd.PrintErrf("%s cannot use the archive, only backups: %s\n", on, why)
	}
	if whyNoBackups != "" {
		cmd.PrintErrf("%s cannot use the backups, only the archive: %s\n", on, whyNoBackups)
	}
}

// waitRebuilt waits until every operation has ended, and tells how many are left. Of one that did not succeed, Err says why.
func waitRebuilt(
	ctx context.Context, cmd *cobra.Command, look func(context.Context, id.OperationID) (operation.Operation, error),
	list []operator.Recovering,
) error {
	for told := 0; ; {
		left := 0
		for i := range list {
			r := &list[i]
			if r.Err != nil || r.Operation.Status.Final() {
				continue
			}
			now, err := look(ctx, r.Operation.ID)
			if err != nil {
				return err
			}
			switch r.Operation = now; {
			case !now.Status.Final():
				left++
			case now.Status != operation.Succeeded:
				r.Err = notDone(now)
			}
		}
		if left == 0 {
			return nil
		}
		if left != told {
			told = left
			cmd.PrintErrf("%d left\n", told)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitPoll):
		}
	}
}

func recoveringRow(r operator.Recovering) row {
	why := any(nil)
	if r.Err != nil {
		why = r.Err.Error()
	}
	return row{
		{"databaseId", r.ID}, {"name", r.Name}, {"on", r.On}, {"operationId", some(string(r.Operation.ID))},
		{"status", some(string(r.Operation.Status))}, {"why", why},
	}
}
