package admin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// adopting are the flags of what is about a database that a server has and the metadata do not know.
type adopting struct {
	server, database, account, reason string
	wait                              bool
}

func (a *adopting) flags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringVar(&a.server, "server", "", "the "+called[id.ServerID]())
	f.StringVar(&a.database, "database", "", "the database's ID or name, as the doctor shows it")
	f.StringVar(&a.account, "account", "", "whose it becomes, where the agent does not know: an "+called[id.AccountID]())
	f.StringVar(&a.reason, "reason", "", "why; the activity log shows it to the customer")
	f.BoolVar(&a.wait, "wait", false, waitUsage)
	cmd.Args = cobra.NoArgs
	return required(cmd, "server", "database", "reason")
}

// asked is what is asked for.
func (a *adopting) asked(ctx context.Context, o *operator.Operator) (q adoptions.Asked, err error) {
	q.Database, q.Order = a.database, operation.Order{By: person(), Reason: a.reason}
	if q.Server, err = find[id.ServerID](ctx, o, "server", a.server); err != nil {
		return q, err
	}
	q.Account, err = findAny[id.AccountID](ctx, o, "account", a.account)
	return q, err
}

func (m *metadata) databaseAdopt() *cobra.Command {
	var a adopting
	gone := false
	cmd := a.flags(&cobra.Command{
		Use: "adopt", Short: "make a record for a database that a server has and the metadata do not know",
		Long: "Make a record for a database that a server has and the metadata do not know, as after the metadata were restored to\n" +
			"an earlier moment. Its customer goes on working. What the server knows of it comes back: names, roles, limits,\n" +
			"allowlist, query timeouts. What does not is printed; the passwords in force stay, and are to be rotated, as nobody can\n" +
			"be shown them. One that the server has out of service becomes a deleted one, which database recover brings back.\n" +
			"One that has moved to the server since, and whose record names the server where it was, is this one's again at once;\n" +
			"where the latter is gone for good, with --server-gone.",
	})
	cmd.Flags().BoolVar(&gone, "server-gone", false,
		"the server that its record names is gone for good, is disabled, and nothing answers there: do not ask it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			q, err := a.asked(ctx, o)
			if err != nil {
				return nil, err
			}
			q.Order.ServerGone = gone
			return a.adopt(ctx, cmd, o, q)
		})
	}
	return cmd
}

func (m *metadata) databaseDropUnknown() *cobra.Command {
	var a adopting
	bare := false
	cmd := m.asking(a.flags(&cobra.Command{
		Use: "drop-unknown", Short: "delete a database that a server has and the metadata do not know",
		Long: "Delete a database that a server has and the metadata do not know, as any other: a verified backup is made, it is\n" +
			"taken out of service, and until its time of recovery is over database recover brings it back. What is left of one that\n" +
			"is not whole goes the same way. Nothing is touched that this service has not made.\n" +
			"Of one that has left the server, and serves at the one that its record names, the server gives up what it still has:\n" +
			"customers are kept out, and it is dropped at once, without a backup.",
	}))
	cmd.Flags().BoolVar(&bare, "without-backup", false, "make no backup, as where none can be verified")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			q, err := a.asked(ctx, o)
			if err != nil {
				return nil, err
			}
			q.Wanted = adoption.Wanted{Drop: true, Bare: bare}
			about := row{{"server", a.server}, {"database", a.database}, {"withoutBackup", bare}}
			if err := m.confirm(cmd, a.database, "Delete it?", about); err != nil {
				return nil, err
			}
			return a.adopt(ctx, cmd, o, q)
		})
	}
	return cmd
}

func (a *adopting) adopt(
	ctx context.Context, cmd *cobra.Command, o *operator.Operator, q adoptions.Asked,
) (output, error) {
	done, err := o.Adopt(ctx, q)
	if err == nil && a.wait && done.Operation.ID != "" {
		done.Operation, err = waitFor(ctx, cmd, o, done.Operation.ID)
	}
	if err != nil {
		return nil, err
	}
	op, status := any(nil), any(nil)
	if done.Operation.ID != "" {
		op, status = done.Operation.ID, done.Operation.Status
	}
	return noted{row{
		{"operationId", op}, {"status", status}, {"databaseId", done.Record.ID},
		{"name", done.Record.Name}, {"accountId", done.Record.AccountID}, {"fate", string(done.Fate)},
	}, done.Notes}, nil
}

// noted is a row with notes, each of which is a line for people.
type noted struct {
	row
	notes []string
}

// MarshalJSON writes the row with the notes as a list.
func (n noted) MarshalJSON() ([]byte, error) {
	return json.Marshal(append(append(row{}, n.row...), field{"notes", n.notes}))
}

// Print writes the row, and a line for each note.
func (n noted) Print(p terminal.Printer) {
	n.row.Print(p)
	for _, note := range n.notes {
		p.Line("- " + note)
	}
}

func (m *metadata) databaseFinishDeletion() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "finish-deletion", Short: "end a deletion of which the metadata and the server tell different things",
		Long: "End a deletion of which the metadata and the server tell different things, as after one of them was restored to an\n" +
			"earlier moment. One that its server has out of service, or has lost, becomes a deleted one. One that is deleted and\n" +
			"serves is deleted anew, with a backup of what it holds now. Of one that is deleted and that its server has purged,\n" +
			"the record goes. To keep it instead: database recover, or doctor --repair.",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, m.asking(required(cmd, "reason")), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			if err := m.confirmDatabase(ctx, cmd, o, db, "Delete it?"); err != nil {
				return nil, err
			}
			found, err := o.FinishDeletion(ctx, db, operation.Order{By: person(), Reason: reason})
			return operationRow(found), err
		})
}

func (m *metadata) backupAdopt() *cobra.Command {
	var reason, file string
	cmd := &cobra.Command{
		Use: "adopt", Short: "make records for files of backups that a server has and the metadata do not know",
		Long: "Make records for the files of a database's backups that its server has and that no record names. Each is read whole\n" +
			"first, and has to be what its manifest says. It is kept for the days of its account's plan from now on, however old it\n" +
			"is. Files that are damaged are left alone, and shown with the reason.",
	}
	cmd.Flags().StringVar(&file, "file", "", "only this one, as 20260131_120000.sql.gz; by default all that have no record")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	left := 0
	onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			q := adoptions.AskedFiles{Database: db, Order: operation.Order{By: person(), Reason: reason}}
			if file != "" {
				name, err := backup.ParseFilename(file)
				if err != nil {
					return nil, err
				}
				q.Filename = name
			}
			list, err := o.AdoptBackups(ctx, q)
			rows := tableOf(list, func(f adoptions.AdoptedFile) row {
				why := any(nil)
				if f.Err != nil {
					why, left = f.Err.Error(), left+1
				}
				return append(fileRow(f.Backup), field{"why", why})
			})
			return rows.only("fileName", "sizeBytes", "createdAt", "verifiedAt", "expiresAt", "why"), err
		})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil || left == 0 {
			return err
		}
		return fmt.Errorf("%d of the files were not adopted: see the column why", left)
	}
	return cmd
}

func (m *metadata) backupForget() *cobra.Command {
	var reason, file string
	cmd := m.asking(&cobra.Command{
		Use: "forget", Short: "remove the records of a database's backups of which its server has no file",
		Long: "Remove the records of a database's backups of which its server has no file, as where these were deleted after the\n" +
			"moment that the metadata were restored to. No file is removed. Where a storage has lost files, find out first whether\n" +
			"they come back: without a record they would have to be adopted.",
	})
	cmd.Flags().StringVar(&file, "file", "", "only this one, as 20260131_120000.sql.gz; by default all that have no file")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	return onID(m, required(cmd, "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			q := adoptions.AskedFiles{Database: db, Order: operation.Order{By: person(), Reason: reason}}
			if file != "" {
				name, err := backup.ParseFilename(file)
				if err != nil {
					return nil, err
				}
				q.Filename = name
			}
			if err := m.confirmDatabase(ctx, cmd, o, db, "Remove the records of its backups that have no file?"); err != nil {
				return nil, err
			}
			gone, err := o.ForgetBackups(ctx, q)
			return tableOf(gone, fileRow).only("fileName", "sizeBytes", "createdAt", "verifiedAt", "expiresAt"), err
		})
}
