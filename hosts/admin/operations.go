package admin

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) operation() *cobra.Command {
	return group("operation", "asynchronous operations", m.operationList(),
		m.operationOne("show", "show one operation, including kinds that the API does not list", (*operator.Operator).Operation),
		m.operationOne("cancel", "request the cancellation of an operation", (*operator.Operator).CancelOperation),
		m.operationFail(), m.operationRetry(),
		m.deleteUnverified())
}

func (m *metadata) deleteUnverified() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "delete-unverified",
		Short: "delete a database without a deletion backup, so that it cannot be recovered",
		Long: "Delete a database whose deletion backup cannot be made or verified. It is taken out of service as soon as\n" +
			"its server can, its owner cannot recover it, and what it holds is gone when its time of recovery is over; until then\n" +
			"database recover brings it back. It takes the ID alone: the name of one that is gone may be another's by now.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log has it")
	onlyID := func(_ context.Context, _ *operator.Operator, flag, text string) (id.DatabaseID, error) {
		return parse[id.DatabaseID](flag, text)
	}
	return onFound(m, m.asking(required(cmd, "reason")), "database", onlyID,
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			if err := m.confirmDatabase(ctx, cmd, o, db, "Delete it without a backup?"); err != nil {
				return nil, err
			}
			found, err := o.DeleteUnverified(ctx, db, person(), reason)
			return operationRow(found), err
		})
}

// states are what --state takes: a status, or several together.
var states = map[string][]operation.Status{
	"open": {operation.Queued, operation.Running}, "all": nil, "queued": {operation.Queued}, "running": {operation.Running},
	"succeeded": {operation.Succeeded}, "failed": {operation.Failed}, "canceled": {operation.Canceled},
}

func (m *metadata) operationList() *cobra.Command {
	var db, on, kind, state string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list the open operations of all databases, newest first, with their age", Args: cobra.NoArgs,
		Long: "List operations, newest first, including kinds that the API does not list, such as create and purge. Of one that is\n" +
			"open the age is how long it has been so; notBefore is when it is tried again, and errorMessage why it was refused.",
	}
	f := cmd.Flags()
	f.StringVar(&db, "database", "", "only of this "+called[id.DatabaseID]())
	f.StringVar(&on, "server", "", "only on this "+called[id.ServerID]())
	f.StringVar(&kind, "kind", "", "of this kind only, such as backup or create")
	f.StringVar(&state, "state", "open", "open, all, queued, running, succeeded, failed or canceled")
	f.IntVar(&limit, "limit", 0, "most entries to list; 0 lists all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		wanted := ports.OperationFilter{Kind: operation.Kind(kind)}
		statuses, known := states[state]
		if wanted.Statuses = statuses; !known {
			return fault.Invalid("state", "must be open, all, queued, running, succeeded, failed or canceled")
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (_ output, err error) {
			if db != "" {
				if wanted.DatabaseID, err = pastDatabase(ctx, o, "database", db); err != nil {
					return nil, err
				}
			}
			if on != "" {
				if wanted.ServerID, err = find[id.ServerID](ctx, o, "server", on); err != nil {
					return nil, err
				}
			}
			found, err := o.FindOperations(ctx, wanted, ports.Page{Limit: limit})
			now := system.NewClock().Now()
			return tableOf(found, func(o ports.FoundOperation) row { return foundRow(o, now) }).only("operationId", "type", "status",
				"stage", "age", "database", "server", "notBefore", "attempts", "errorCode", "errorMessage"), err
		})
	}
	return cmd
}

// foundRow is an operation among others. Its age ends with it.
func foundRow(o ports.FoundOperation, now time.Time) row {
	until := now
	if o.FinishedAt != nil {
		until = *o.FinishedAt
	}
	age := until.Sub(o.CreatedAt).Truncate(time.Second)
	r := row{
		{"operationId", o.ID}, {"type", o.Kind}, {"status", o.Status}, {"stage", o.Stage}, {"age", age.String()},
		{"database", o.DatabaseName}, {"server", o.ServerName},
	}
	again := any(nil)
	if !o.Status.Final() {
		again = o.NotBefore
	}
	r = append(r, field{"notBefore", again}, field{"attempts", o.Attempts})
	for _, f := range operationRow(o.Operation) {
		if !slices.ContainsFunc(r, func(has field) bool { return has.Name == f.Name }) {
			r = append(r, f)
		}
	}
	return r
}

const serverGoneUsage = "its server is gone for good, is disabled, and nothing answers there: do not ask it"

func (m *metadata) operationFail() *cobra.Command {
	var gone bool
	cmd := &cobra.Command{
		Use: "fail", Short: "end an operation that does not end by itself, after a look at its server",
		Long: "End an open operation that no worker has and its server does not work on. The server takes back what the operation\n" +
			"began; one that has come too far for that succeeds or goes on, as the printed status says. The end of a purge puts\n" +
			"the database into service, as it was before its deletion. With --server-gone nothing is asked of the server: a\n" +
			"deletion and a purge are then done, and every other operation has failed.",
	}
	cmd.Flags().BoolVar(&gone, "server-gone", false, serverGoneUsage)
	return m.order(m.asking(cmd), func(
		ctx context.Context, o *operator.Operator, op id.OperationID, by operation.Order,
	) (output, error) {
		by.ServerGone = gone
		if err := m.confirmOperation(ctx, cmd, o, op); err != nil {
			return nil, err
		}
		found, err := o.FailOperation(ctx, op, by)
		return operationRow(found), err
	})
}

func (m *metadata) operationRetry() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry", Short: "have an operation that waits for its next attempt tried at once, after a look at its server",
	}
	return m.order(cmd, func(ctx context.Context, o *operator.Operator, op id.OperationID, by operation.Order) (output, error) {
		found, err := o.RetryOperation(ctx, op, by)
		return operationRow(found), err
	})
}

// order is a command by which an operator overrules what would happen.
func (m *metadata) order(
	cmd *cobra.Command, do func(context.Context, *operator.Operator, id.OperationID, operation.Order) (output, error),
) *cobra.Command {
	var reason string
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "reason"), "operation",
		func(ctx context.Context, o *operator.Operator, op id.OperationID) (output, error) {
			return do(ctx, o, op, operation.Order{By: person(), Reason: reason})
		})
}

func (m *metadata) operationOne(
	use, short string, do func(*operator.Operator, context.Context, id.OperationID) (operation.Operation, error),
) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	return onID(m, cmd, "operation", func(ctx context.Context, o *operator.Operator, op id.OperationID) (output, error) {
		found, err := do(o, ctx, op)
		return operationRow(found), err
	})
}

func operationRow(o operation.Operation) row {
	return row{
		{"operationId", o.ID}, {"databaseId", o.DatabaseID}, {"type", o.Kind}, {"status", o.Status}, {"stage", o.Stage},
		{"progress", o.Progress}, {"createdAt", o.CreatedAt}, {"finishedAt", o.FinishedAt},
		{"errorCode", string(o.ErrorCode)}, {"errorMessage", o.ErrorText}, {"leaseOwner", o.Owner}, {"leaseEpoch", o.Epoch},
		{"leaseUntil", o.Until},
	}
}
