package members

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Invitations makes the command "svc invitations".
func Invitations(a *app.App) *cobra.Command {
	return app.Group("invitations", "See and withdraw the invitations to a database",
		invitationsList(a),
		invitationsResend(a),
		invitationsRemove(a),
	)
}

func invitationsList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list DATABASE", Short: "List the invitations that are open or expired", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			const none = `No invitations. Invite somebody with "svc members add DATABASE EMAIL ROLE".`
			return app.ShowAll(a, app.Sequence(c.Members.ListInvitations(ctx, of)), none, func(i wire.Invitation) []app.Field {
				return []app.Field{
					{"EMAIL", i.Email}, {"ROLE", i.Role}, {"STATUS", i.Status}, {"EXPIRES", i.ExpiresAt}, {"CREATED", i.CreatedAt},
					{"ID", i.ID},
				}
			})
		}),
	}
}

func invitationsResend(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "resend DATABASE INVITATION", Short: "Mail an invitation again", Args: cobra.ExactArgs(2),
		Long: `Mail an invitation again, which is named by mail address or by ID.

It is open for seven more days then. The link of the mail before works no more.`,
		ValidArgsFunction: completePerson(a, invitedAddresses),
		RunE: onInvitation(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, to id.InvitationID, _ string) error {
			sent, err := c.Members.ResendInvitation(ctx, of, to)
			return a.Done(sent, err, "%s was sent another invitation.", sent.Email)
		}),
	}
}

func invitationsRemove(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove DATABASE INVITATION", Short: "Withdraw an invitation", Args: cobra.ExactArgs(2),
		Long:              "Withdraw an invitation, which is named by mail address or by ID. The link of its mail works no more.",
		ValidArgsFunction: completePerson(a, invitedAddresses),
		RunE: onInvitation(a, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, to id.InvitationID, name string) error {
			err := c.Members.DeleteInvitation(ctx, of, to)
			return a.Done(map[string]string{"id": string(to)}, err, "The invitation of %s was withdrawn.", name)
		}),
	}
}

// onInvitation runs a command whose arguments are a database and an invitation to it, which it also gets as it was named.
func onInvitation(
	a *app.App, do func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, to id.InvitationID, name string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		to, email, err := personNamed[id.InvitationID](args[1], "INVITATION")
		if err != nil {
			return err
		}
		return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			if email != "" {
				list, err := c.Members.ListInvitations(ctx, of)
				found, err := app.Named(app.Sequence(list, err), email, "invitation of", func(i wire.Invitation) string { return i.Email })
				if err != nil {
					return err
				}
				to = found.ID
			}
			return do(ctx, c, of, to, args[1])
		})(cmd, args)
	}
}

// invitedAddresses are those that are invited to a database.
func invitedAddresses(ctx context.Context, c *apiclient.Client, of id.DatabaseID) (addresses []string, err error) {
	list, err := c.Members.ListInvitations(ctx, of)
	for _, i := range list {
		addresses = append(addresses, app.Offered(i.Email, string(i.ID), string(i.Role)+", "+string(i.Status)))
	}
	return addresses, err
}
