package roles

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func logins(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "logins DATABASE", Short: "List the logins that were created with a database", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			return app.ShowAll(a, app.Sequence(c.Logins.List(ctx, of)), "No logins.", func(l wire.Login) []app.Field {
				return []app.Field{
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

func loginsCredentials(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "logins-credentials DATABASE runtime|readonly", Short: "Show how a login logs in, with its password",
		Args: cobra.ExactArgs(2),
		Long: `Show how a login logs in, with its password. The activity log of the database records that. The owner's password is shown
when the database is created and when it is rotated, and at no other time.`,
		ValidArgsFunction: a.CompleteDatabaseAnd("runtime", "readonly"),
		RunE: func(cmd *cobra.Command, args []string) error {
			login, err := fault.OneOf("login", args[1], shownLogins...)
			if err != nil {
				return app.Usage("%w", err)
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				l, err := c.Logins.Reveal(ctx, of, login)
				if err != nil {
					return err
				}
				return a.ShowRecord(l, credentialFields(l.Username, l.Credential)...)
			})(cmd, args)
		},
	}
}

func loginsRotate(a *app.App) *cobra.Command {
	var wait bool
	var key app.KeyFlag
	cmd := &cobra.Command{
		Use: "logins-rotate DATABASE owner|runtime|readonly", Short: "Give a login a new password", Args: cobra.ExactArgs(2),
		Long: `Give a login a new password. The connections that were made with the old one are closed, and their open transactions
rolled back. The owner's new password is printed once; the others' are shown by "svc managed logins-credentials".`,
		ValidArgsFunction: a.CompleteDatabaseAnd("owner", "runtime", "readonly"),
		RunE: func(cmd *cobra.Command, args []string) error {
			login, err := fault.OneOf("login", args[1], database.Managed.Logins()...)
			if err != nil {
				return app.Usage("%w", err)
			}
			if err := a.Ask(args[1], closes(args[1], args[0])); err != nil {
				return err
			}
			opt, err := key.Use(a)
			if err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				rotate := func(ctx context.Context) (wire.LoginRotation, error) {
					return c.Logins.Rotate(ctx, of, login, wire.Disconnect{ConfirmDisconnect: true}, opt)
				}
				rotation, err := rotate(ctx)
				if err == nil && wait {
					done := func(r wire.LoginRotation) bool { return r.Status != role.Pending }
					rotation, err = app.UntilDone(ctx, rotation, done, rotate)
				}
				if err != nil {
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return showRotation(a, rotation, args[0], app.Again(cmd, args))
			})(cmd, args)
		},
	}
	key.Add(cmd)
	return changing(a, cmd, &wait)
}

// showRotation shows the rotation of a login's password, and says what follows from how it stands.
func showRotation(a *app.App, r wire.LoginRotation, of, repeat string) error {
	switch {
	case a.WantsJSON():
	case r.Status == role.Pending:
		a.Note("the server has not confirmed it yet, and the service goes on; wait for it with: %s --wait", repeat)
	case r.Login != database.OwnerLogin:
		a.Note("see the new password with: %s", a.Onward("svc", "managed", "logins-credentials", of, string(r.Login)))
	case r.Password == "":
		a.Note("the owner's password was in an earlier answer to this request; if that is lost, rotate it once more")
	}
	return a.ShowRecord(r,
		app.Field{"Login", r.Login},
		app.Field{"Operation", r.OperationID},
		app.Field{"Status", r.Status},
		app.Field{"Password generation", r.CredentialGeneration},
		app.Field{"Password", r.Password},
	)
}
