package admin

import (
	"context"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

func (m *metadata) change() *cobra.Command {
	return group("change", "changes of logins: rotations, revocations, expiries and removals", m.changeList(), m.changeEnd())
}

func (m *metadata) changeList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list the changes of the logins of a database, newest first"}
	return onFound(m, cmd, "database", pastDatabase,
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			found, err := o.Changes(ctx, db)
			return tableOf(found, changeRow).only(
				"changeId", "createdAt", "endedAt", "username", "kind", "status", "attempts", "refusal"), err
		})
}

func (m *metadata) changeEnd() *cobra.Command {
	var text, reason string
	var gone bool
	cmd := &cobra.Command{
		Use:   "end",
		Short: "end a pending change that its server refuses for good, after a look at the login",
		Long: "End a pending change after a look at the login. The password that the server has stored is kept. Where \"found\" is\n" +
			"not old_in_force or new_in_force, nobody gets in with it: rotate the login.",
	}
	f := cmd.Flags()
	f.StringVar(&text, "change", "", "change ID, as change list shows it")
	f.StringVar(&reason, "reason", "", "why; the activity log shows it to the customer")
	f.BoolVar(&gone, "server-gone", false, serverGoneUsage)
	return onID(m, required(cmd, "change", "reason"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			change, err := parse[id.OperationID]("change", text)
			if err != nil {
				return nil, err
			}
			ended, err := o.EndChange(ctx, db, change, operation.Order{By: person(), Reason: reason, ServerGone: gone})
			return append(changeRow(ended.Attempted), field{"found", ended.Found}), err
		})
}

// person names who runs the command: the user of the machine, also behind sudo.
func person() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func changeRow(c roles.Attempted) row {
	return row{
		{"changeId", c.ID}, {"databaseId", c.DatabaseID}, {"username", c.Username}, {"kind", c.Kind}, {"status", c.Status},
		{"createdAt", c.CreatedAt}, {"endedAt", c.EndedAt}, {"attempts", c.Attempts}, {"refusal", c.Refusal},
	}
}
