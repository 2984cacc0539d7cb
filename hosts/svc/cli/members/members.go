// Package members has the commands of svc about the people of a database and their invitations.
package members

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc members".
func Command(a *app.App) *cobra.Command {
	return app.Group("members", "Say who else may use a database",
		membersList(a),
		membersAdd(a),
		membersUpdate(a),
		membersRemove(a),
	)
}

// person is a row of the people of a database: the owner, a member, or somebody who is invited.
type person struct {
	email, name string
	role        account.Standing
	status      string
	since       *time.Time
	id          any // nil for the owner
}

func peopleOf(m wire.Members) []person {
	people := []person{{email: m.Owner.Email, name: m.Owner.Name, role: account.Owner, status: "owner"}}
	for _, one := range m.Members {
		people = append(people, person{one.Email, one.Name, one.Role, "member", &one.CreatedAt, one.ID})
	}
	for _, i := range m.Invitations {
		status := "invited"
		if i.Status != member.Open {
			status = "invitation " + string(i.Status)
		}
		people = append(people, person{i.Email, "", i.Role, status, &i.CreatedAt, i.ID})
	}
	return people
}

func membersList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list DATABASE", Short: "List the owner, the members and the invited", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			all, err := c.Members.List(ctx, of)
			if err != nil {
				return err
			}
			if a.WantsJSON() {
				return a.ShowJSON(all)
			}
			return app.ShowList(a, peopleOf(all), "", func(p person) []app.Field {
				return []app.Field{
					{"EMAIL", p.email}, {"NAME", p.name}, {"ROLE", p.role}, {"STANDING", p.status}, {"SINCE", p.since}, {"ID", p.id},
				}
			})
		}),
	}
}

var roleNames = []string{string(account.Admin), string(account.Developer), string(account.Viewer)}

// whatRolesAllow ends the help of commands that take a role.
const whatRolesAllow = `A viewer sees the database, its operations and backups, and can download these. A developer also makes
and deletes backups. An admin also changes what the database is: its lifecycle, allowlist, roles and extensions. All of them
use keys of their own accounts.`

func membersAdd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "add DATABASE EMAIL admin|developer|viewer", Short: "Add somebody to a database, or invite them", Args: cobra.ExactArgs(3),
		Long: `Add a user of the service to a database, or set the role of a member. Anybody else is invited by mail.

` + whatRolesAllow,
		ValidArgsFunction: completePerson(a, invitedAddresses, roleNames...),
		RunE: func(cmd *cobra.Command, args []string) error {
			email, err := account.ValidateEmail(args[1])
			if err != nil {
				return app.Usage("%w", err)
			}
			role, err := member.ParseRole(args[2])
			if err != nil {
				return app.Usage("%w", err)
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				added, err := c.Members.Add(ctx, of, wire.AddMember{Email: email, Role: role})
				if err != nil {
					return err
				}
				if added.Kind == wire.KindInvitation {
					return a.Say(added, "%s was invited to %s as %s, by mail.", added.Email, args[0], added.Role)
				}
				return a.Say(added, "%s is %s of %s.", added.Email, added.Role, args[0])
			})(cmd, args)
		},
	}
}

func membersUpdate(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "update DATABASE MEMBER admin|developer|viewer", Short: "Change the role of a member", Args: cobra.ExactArgs(3),
		Long: `Change the role of a member, who is named by mail address or by membership ID.

Passwords of the database's logins that the person knows stay as they are.

` + whatRolesAllow,
		ValidArgsFunction: completePerson(a, memberAddresses, roleNames...),
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := member.ParseRole(args[2])
			if err != nil {
				return app.Usage("%w", err)
			}
			return onMember(a, cmd, args, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, who id.MembershipID) error {
				changed, err := c.Members.SetRole(ctx, of, who, wire.SetMemberRole{Role: role})
				return a.Done(changed, err, "%s is %s of %s.", changed.Email, changed.Role, args[0])
			})
		},
	}
}

func membersRemove(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "remove DATABASE MEMBER", Short: "Take the access of a member away", Args: cobra.ExactArgs(2),
		Long: `Take the access of a member away, who is named by mail address or by membership ID.

The person's keys stop working for the database at once, and downloads in progress end. Passwords of the database's logins
that the person knows stay as they are: rotate them.`,
		ValidArgsFunction: completePerson(a, memberAddresses),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := personNamed[id.MembershipID](args[1], "MEMBER"); err != nil {
				return err
			}
			what := "This takes the access to " + args[0] + " away from " + args[1] + ". Passwords of its logins stay as they are."
			if err := a.Ask(args[1], what); err != nil {
				return err
			}
			return onMember(a, cmd, args, func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, who id.MembershipID) error {
				err := c.Members.Remove(ctx, of, who)
				return a.Done(map[string]string{"id": string(who)}, err, "%s is no member of %s any more.", args[1], args[0])
			})
		},
	})
}

// onMember runs a command whose arguments begin with a database and one of its members.
func onMember(
	a *app.App, cmd *cobra.Command, args []string, do func(context.Context, *apiclient.Client, id.DatabaseID, id.MembershipID) error,
) error {
	who, email, err := personNamed[id.MembershipID](args[1], "MEMBER")
	if err != nil {
		return err
	}
	return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
		if email != "" {
			all, err := c.Members.List(ctx, of)
			found, err := app.Named(app.Sequence(all.Members, err), email, "member", func(m wire.Member) string { return m.Email })
			if errors.As(err, new(app.NotFound)) {
				list := a.Onward("svc", "members", "list", args[0])
				return app.Next(err, `"%s" shows the members; "svc members add" changes an invitation`, list)
			}
			if err != nil {
				return err
			}
			who = found.ID
		}
		return do(ctx, c, of, who)
	})(cmd, args)
}

// personNamed reads an argument that names somebody by mail address or by an ID; one of the two is then set.
func personNamed[T ~string](text, argument string) (of T, email string, err error) {
	if of, is := app.IDOf[T](text); is {
		return of, "", nil
	}
	email, err = account.ValidateEmail(text)
	if err != nil {
		return "", "", app.Usage("%s must be a mail address or a UUID, and %q is neither", argument, text)
	}
	return "", email, nil
}

// memberAddresses are those of the members of a database.
func memberAddresses(ctx context.Context, c *apiclient.Client, of id.DatabaseID) (addresses []string, err error) {
	all, err := c.Members.List(ctx, of)
	for _, m := range all.Members {
		addresses = append(addresses, app.Offered(m.Email, string(m.ID), m.Name))
	}
	return addresses, err
}

// completePerson offers the names of databases, then the addresses that the database has, and then these values.
func completePerson(
	a *app.App, addresses func(context.Context, *apiclient.Client, id.DatabaseID) ([]string, error), values ...string,
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return a.CompleteDatabase(cmd, args, typed)
		case 1:
			return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) ([]string, error) {
				of, err := a.DatabaseNamed(ctx, args[0])
				if err != nil {
					return nil, err
				}
				return addresses(ctx, c, of)
			})
		case 2:
			return values, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
