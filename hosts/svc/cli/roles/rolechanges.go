package roles

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// changing completes a command that changes a password: it closes connections, and can wait.
func changing(a *app.App, cmd *cobra.Command, wait *bool) *cobra.Command {
	cmd.Flags().BoolVar(wait, "wait", false, "wait until the server has confirmed it")
	return a.Confirmed(cmd)
}

// closes is what a change does to who is connected as a login of a database.
func closes(login, of string) string {
	return "This closes all connections of " + login + " of " + of + ", and rolls their open transactions back."
}

func roleRotate(a *app.App, m RoleModel) *cobra.Command {
	return roleChange(a, m, role.Rotation, m.prefix+"rotate DATABASE ROLE", "Give a role a new password",
		`Give a role a new password. The connections that were made with the old one are closed, and their open transactions rolled
back.`)
}

func roleRevoke(a *app.App, m RoleModel) *cobra.Command {
	return roleChange(a, m, role.Revocation, m.prefix+"revoke DATABASE ROLE", "Let a role log in no more",
		`Let a role log in no more. Its connections are closed, and their open transactions rolled back. This cannot be undone. The role
keeps what it owns, and counts as one of the database's roles until it is deleted.`)
}

func roleChange(a *app.App, m RoleModel, kind role.Kind, use, short, long string) *cobra.Command {
	var wait bool
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(2), ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := closes(args[1], args[0])
			if kind == role.Revocation {
				what += " Nobody can log in as the role any more, and that cannot be undone."
			}
			if err := a.Ask(args[1], what); err != nil {
				return err
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				change, err := m.Calls(c).Change(ctx, of, one, wire.ChangeRole{Kind: kind, ConfirmDisconnect: true}, opt)
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				if wait {
					change, err = m.awaitChange(ctx, a, args, change, m.replay(c, of, change))
				}
				if err != nil {
					return err
				}
				return m.endChange(a, args, change)
			})(cmd, args)
		},
	}
	key.Add(cmd)
	return changing(a, cmd, &wait)
}

// look is a call that says how a change stands.
type look func(context.Context) (wire.RoleChange, error)

// replay has a change go on.
func (m RoleModel) replay(c *apiclient.Client, of id.DatabaseID, change wire.RoleChange) look {
	return func(ctx context.Context) (wire.RoleChange, error) {
		confirmed := wire.Disconnect{ConfirmDisconnect: true}
		return m.Calls(c).ContinueChange(ctx, of, change.RoleID, change.OperationID, confirmed)
	}
}

// awaitChange looks at a change until the server has confirmed it. Ending svc does not end the change.
func (m RoleModel) awaitChange(
	ctx context.Context, a *app.App, args []string, change wire.RoleChange, now look,
) (wire.RoleChange, error) {
	if change.Status == role.Pending {
		a.Note("the server has not confirmed it yet: waiting")
	}
	change, err := app.UntilDone(ctx, change, func(now wire.RoleChange) bool { return now.Status != role.Pending }, now)
	return change, app.Next(err, "the change goes on; see how it stands with: %s", m.changeLine(a, args, change))
}

// changeLine is the command line that shows a change.
func (m RoleModel) changeLine(a *app.App, args []string, change wire.RoleChange) string {
	return m.line(a, "change", args[0], args[1], string(change.OperationID))
}

// endChange shows a change, and says what follows from how it stands.
func (m RoleModel) endChange(a *app.App, args []string, change wire.RoleChange) error {
	switch {
	case a.WantsJSON():
	case change.Status == role.Pending:
		a.Note("the server has not confirmed it yet, and the service goes on; wait for it with: %s --wait",
			m.changeLine(a, args, change))
	case change.Kind == role.Rotation:
		a.Note("see the new password with: %s", m.line(a, "credentials", args[:2]...))
	case change.Kind == role.Revocation:
		a.Note("remove the role with: %s", m.line(a, "delete", args[:2]...))
	}
	return a.ShowRecord(change,
		app.Field{"Operation", change.OperationID},
		app.Field{"Role", change.RoleID},
		app.Field{"Kind", change.Kind},
		app.Field{"Status", change.Status},
		app.Field{"Password generation", change.CredentialGeneration},
	)
}

func roleShowChange(a *app.App, m RoleModel) *cobra.Command {
	var wait bool
	var goOn bool
	cmd := &cobra.Command{
		Use: m.prefix + "change DATABASE ROLE OPERATION", Short: "Show how a change of a role stands, or have it go on",
		Long: `Show how a rotation or a revocation stands. The service goes on with a pending one by itself, after longer and longer
pauses; with --continue it does so at once. One that is completed is not done again.`,
		Args: cobra.ExactArgs(3), ValidArgsFunction: m.completeChange(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			operation, err := app.WantID[id.OperationID](args[2], "OPERATION")
			if err != nil {
				return err
			}
			if goOn {
				if err := a.Ask(args[1], closes(args[1], args[0])); err != nil {
					return err
				}
			}
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				now := func(ctx context.Context) (wire.RoleChange, error) {
					return m.Calls(c).GetChange(ctx, of, one, operation)
				}
				if goOn {
					now = m.replay(c, of, wire.RoleChange{RoleID: one, OperationID: operation})
				}
				change, err := now(ctx)
				if RefusedWith(err, fault.OperationNotFound) {
					return app.Next(err, `"%s" shows the pending changes`, m.line(a, "list", args[0]))
				}
				if err == nil && wait {
					change, err = m.awaitChange(ctx, a, args, change, now)
				}
				if err != nil {
					return err
				}
				return m.endChange(a, args, change)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&goOn, "continue", false, "have a pending change go on")
	return changing(a, cmd, &wait)
}

// completeChange offers the pending changes of the database's roles for the third argument.
func (m RoleModel) completeChange(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 2 {
			return m.complete(a)(cmd, args, typed)
		}
		return m.completeOf(a, cmd, args[0], func(r wire.ListedRole) string {
			if r.OperationID == nil {
				return ""
			}
			return string(*r.OperationID) + "\t" + r.DisplayName
		})
	}
}
