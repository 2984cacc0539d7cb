package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

func logins(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "logins DATABASE", Short: "List the logins that were created with a database", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completeDatabase,
		RunE: a.onDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			list, err := c.Logins.List(ctx, of)
			if err != nil {
				return err
			}
			return showList(a, list, "No logins.", func(l wire.Login) []field {
				return []field{
					{"LOGIN", l.Login}, {"LIMIT", unlessZero(l.ConnectionLimit)}, {"GENERATION", l.CredentialGeneration},
					{"USERNAME", l.Username},
				}
			})
		}),
	}
}

// unlessZero is nil for no limit.
func unlessZero(limit int) any {
	if limit == 0 {
		return nil
	}
	return limit
}

// Logins whose password can be shown.
var shownLogins = []database.Login{database.RuntimeLogin, database.ReadonlyLogin}

func loginsCredentials(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "logins-credentials DATABASE runtime|readonly", Short: "Show how a login logs in, with its password",
		Args: cobra.ExactArgs(2),
		Long: `Show how a login logs in, with its password. The activity log of the database records that. The owner's password is shown
when the database is created and when it is rotated, and at no other time.`,
		ValidArgsFunction: a.completeDatabaseAnd("runtime", "readonly"),
		RunE: func(cmd *cobra.Command, args []string) error {
			login, err := fault.OneOf("login", args[1], shownLogins...)
			if err != nil {
				return usageError{err}
			}
			return a.onDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				l, err := c.Logins.Reveal(ctx, of, login)
				if err != nil {
					return err
				}
				return a.showRecord(l, credentialFields(l.Username, l.Credential)...)
			})(cmd, args)
		},
	}
}

func loginsRotate(a *app) *cobra.Command {
	var flags changing
	var key keyFlag
	cmd := &cobra.Command{
		Use: "logins-rotate DATABASE owner|runtime|readonly", Short: "Give a login a new password", Args: cobra.ExactArgs(2),
		Long: `Give a login a new password. The connections that were made with the old one are closed, and their open transactions
rolled back. The owner's new password is printed once; the others' are shown by "svc managed logins-credentials".`,
		ValidArgsFunction: a.completeDatabaseAnd("owner", "runtime", "readonly"),
		RunE: func(cmd *cobra.Command, args []string) error {
			login, err := fault.OneOf("login", args[1], database.Managed.Logins()...)
			if err != nil {
				return usageError{err}
			}
			if err := flags.confirm.ask(a, args[1], closes(args[1], args[0])); err != nil {
				return err
			}
			opt, err := key.use(a)
			if err != nil {
				return err
			}
			return a.onDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				rotate := func(ctx context.Context) (wire.LoginRotation, error) {
					return c.Logins.Rotate(ctx, of, login, wire.Disconnect{ConfirmDisconnect: true}, opt)
				}
				rotation, err := rotate(ctx)
				if err == nil && flags.wait {
					done := func(r wire.LoginRotation) bool { return r.Status != role.Pending }
					rotation, err = untilDone(ctx, rotation, done, rotate)
				}
				if err != nil {
					return a.mayBeDone(err, again(cmd, args))
				}
				return showRotation(a, rotation, args[0], again(cmd, args))
			})(cmd, args)
		},
	}
	flags.add(cmd)
	key.add(cmd)
	return cmd
}

// showRotation shows the rotation of a login's password, and says what follows from how it stands.
func showRotation(a *app, r wire.LoginRotation, of, repeat string) error {
	switch {
	case a.wantsJSON():
	case r.Status == role.Pending:
		a.note("the server has not confirmed it yet, and the service goes on; wait for it with: %s --wait", repeat)
	case r.Login != database.OwnerLogin:
		a.note("see the new password with: %s", a.onward("svc", "managed", "logins-credentials", of, string(r.Login)))
	case r.Password == "":
		a.note("the owner's password was in an earlier answer to this request; if that is lost, rotate it once more")
	}
	return a.showRecord(r,
		field{"Login", r.Login},
		field{"Operation", r.OperationID},
		field{"Status", r.Status},
		field{"Password generation", r.CredentialGeneration},
		field{"Password", r.Password},
	)
}
