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

func roleDelete(a *app.App, m RoleModel) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: m.prefix + "delete DATABASE ROLE", Short: "Revoke a role and remove it", Args: cobra.ExactArgs(2),
		Long: `Revoke a role and remove it. Its connections are closed, and their open transactions rolled back.

Nothing that the role owns is dropped: where something depends on it, the role is revoked and stays until that is gone.`,
		ValidArgsFunction: m.complete(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Ask(args[1], closes(args[1], args[0])+" The role cannot be brought back."); err != nil {
				return err
			}
			return m.onRole(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID) error {
				gone, err := m.removed(ctx, a, c, of, one)
				switch {
				case RefusedWith(err, fault.RoleDependencies):
					return m.afterDependencies(ctx, c, of, one, err, app.Again(cmd, args))
				case err != nil:
					return a.MayBeDone(err, app.Again(cmd, args))
				}
				return a.Say(gone, "The role %s was removed.", args[1])
			})(cmd, args)
		},
	})
}

// removed repeats the call that removes a role until it is gone.
func (m RoleModel) removed(
	ctx context.Context, a *app.App, c *apiclient.Client, of id.DatabaseID, one id.RoleID,
) (wire.RoleRemoval, error) {
	now, err := m.remove(ctx, c, of, one)
	if err != nil {
		return now, err
	}
	done := func(now wire.RoleRemoval) bool { return now.Status == string(role.Removed) }
	if !done(now) {
		a.Note("the server has not confirmed it yet: repeating the call")
	}
	return app.UntilDone(ctx, now, done, func(ctx context.Context) (wire.RoleRemoval, error) { return m.remove(ctx, c, of, one) })
}

// afterDependencies adds to the refusal to remove a role what its owner can do about it.
func (m RoleModel) afterDependencies(
	ctx context.Context, c *apiclient.Client, of id.DatabaseID, one id.RoleID, refusal error, repeat string,
) error {
	list, err := m.Calls(c).List(ctx, of, true)
	if err != nil {
		return refusal
	}
	for _, r := range list {
		if r.RoleID == one {
			return app.Next(refusal, `nobody can log in as the role any more. As the database's owner, keep what it owns, and take the
rest from it:
  REASSIGN OWNED BY "%s" TO CURRENT_USER; DROP OWNED BY "%s";
A grant whose "grantor" is another login stays: end what the grantor may pass on, as the owner of the object:
  GRANT ALL (COLUMN) ON TABLE TO GRANTOR WITH GRANT OPTION; REVOKE ALL (COLUMN) ON TABLE FROM GRANTOR CASCADE;
then repeat: %s`, r.Username, r.Username, repeat)
		}
	}
	return refusal
}
