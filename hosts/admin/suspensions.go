package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) accountSuspend() *cobra.Command {
	return m.suspension(&cobra.Command{
		Use:   "suspend",
		Short: "do not serve an account until it is resumed: refuse its keys and people, and close its databases",
		Long: "Refuse an account's keys and people, and close its databases to clients, until account resume. A batch host\n" +
			"closes them within seconds; where a server is away, when it is back. Nothing is deleted meanwhile: previews outlast\n" +
			"their leases, and deleted databases their purge. Daily backups go on.",
	}, "why; the customer's keys and people are told, and the activity log has it", (*operator.Operator).Suspend)
}

func (m *metadata) accountResume() *cobra.Command {
	return m.suspension(&cobra.Command{
		Use:   "resume",
		Short: "serve a suspended account again, with the keys and passwords that it had",
		Long: "Serve a suspended account again, with the keys and passwords that it had. Databases that the customer had stopped\n" +
			"stay stopped. Previews and deleted databases whose time is over by now are deleted and purged as usual.",
	}, "why; the activity log has it", (*operator.Operator).Resume)
}

func (m *metadata) suspension(
	cmd *cobra.Command, why string, do func(*operator.Operator, context.Context, id.AccountID, string) (account.Account, error),
) *cobra.Command {
	var reason string
	cmd.Flags().StringVar(&reason, "reason", "", why)
	return onID(m, required(cmd, "reason"), "account",
		func(ctx context.Context, o *operator.Operator, of id.AccountID) (output, error) {
			a, err := do(o, ctx, of, reason)
			if err != nil {
				return nil, err
			}
			email, err := ownerOf(ctx, o, a.ID)
			return append(row{{"accountId", a.ID}, {"email", email}}, suspensionRow(a.Suspension)...), err
		})
}

// suspensionRow is since when an account is suspended, and why; both are null where it is served.
func suspensionRow(s account.Suspension) row {
	if !s.Suspended() {
		return row{{"suspendedAt", nil}, {"suspendedFor", nil}}
	}
	return row{{"suspendedAt", *s.SuspendedAt}, {"suspendedFor", s.SuspendedFor}}
}
