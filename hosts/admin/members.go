package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) member() *cobra.Command {
	return group("member", "people who may use a database that another owns", m.memberList(), m.memberRemove())
}

func (m *metadata) memberList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list the owner, the members and the invitations of a database"}
	return onID(m, cmd, "database", func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
		found, err := o.People(ctx, db)
		return peopleTable(found).only("kind", "email", "name", "role", "status", "id", "userId", "createdAt", "expiresAt"), err
	})
}

func (m *metadata) memberRemove() *cobra.Command {
	var email string
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "end the membership and the invitation of an address, at once",
		Long: "End the membership and the invitation of an address, at once, for an owner whose plan has no API access. Passwords\n" +
			"of the database's logins that the person knows stay as they are.",
	}
	cmd.Flags().StringVar(&email, "email", "", "address of the member, or of the invitation")
	return onID(m, required(cmd, "email"), "database",
		func(ctx context.Context, o *operator.Operator, db id.DatabaseID) (output, error) {
			done, err := o.RemovePerson(ctx, db, email)
			if err != nil {
				return nil, err
			}
			named, err := databaseNamed(ctx, o, db)
			return append(named, row{
				{"email", email}, {"memberships", done.Memberships}, {"invitations", done.Invitations},
			}...), err
		})
}

// peopleTable lists all in one, each with the fields that any of them has.
func peopleTable(l members.Listing) table {
	u := l.Owner
	rows := table{{
		{"kind", "owner"}, {"id", nil}, {"userId", u.ID}, {"email", u.Email}, {"name", u.Name}, {"role", account.Owner},
		{"createdAt", nil}, {"status", nil}, {"expiresAt", nil},
	}}
	for _, who := range l.Members {
		rows = append(rows, row{
			{"kind", "member"}, {"id", who.ID}, {"userId", who.UserID}, {"email", who.Email}, {"name", who.Name}, {"role", who.Role},
			{"createdAt", who.CreatedAt}, {"status", nil}, {"expiresAt", nil},
		})
	}
	for _, i := range l.Invitations {
		rows = append(rows, row{
			{"kind", "invitation"}, {"id", i.ID}, {"userId", nil}, {"email", i.Email}, {"name", nil}, {"role", i.Role},
			{"createdAt", i.CreatedAt}, {"status", i.Status}, {"expiresAt", i.ExpiresAt},
		})
	}
	return rows
}
