package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/mail"
	persons "github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

func (m *metadata) user() *cobra.Command {
	plan := string(account.Free)
	return group("user", "people who own or share databases, and how they log in",
		m.accountCreate("make a user with an account on the free plan", &plan), m.userInvite(), m.userLink(), m.userResetFactors(),
		m.userUnlinkSignOn(), m.userSessions(), m.userEndSessions())
}

func (m *metadata) userInvite() *cobra.Command {
	var plan string
	var only bool
	var page page
	cmd := &cobra.Command{
		Use: "invite", Short: "make a user with an account, and a link with which the user chooses a password",
		Long: "Make a user with an account, where the address is nobody's, and print a link with which the user chooses a password\n" +
			"and can then log in. The link works once: for a week, or for 30 minutes where the user has a password already. The\n" +
			"one of before works no more. Where mails are sent, the user gets one with the link. A user and an account that are\n" +
			"there stay as they are.",
	}
	f := cmd.Flags()
	f.StringVar(&plan, "plan", string(account.Free), "free, pro or business")
	f.BoolVar(&only, "print", false, "print the link only, and send no mail")
	m.mail.OutboxFlags(cmd)
	m.newAccount(cmd, &plan, func(ctx context.Context, o *operator.Operator, n operator.NewAccount) (output, error) {
		i, err := o.InviteUser(ctx, n, !only)
		return append(row{
			{"accountId", i.Account.ID}, {"userId", i.User.ID}, {"email", i.User.Email}, {"plan", i.Account.Plan}, {"made", i.Made},
		}, page.row(i.Link)...), err
	})
	return page.before(cmd)
}

func (m *metadata) userLink() *cobra.Command {
	var page page
	cmd := m.onEmail(&cobra.Command{
		Use: "link", Short: "print a link with which a user chooses another password, or the first one",
		Long: "Print a link with which a user chooses another password, or the first one. It works once: for 30 minutes, or for\n" +
			"a week where the user has none yet. The one of before works no more. A second factor stays.",
	}, func(ctx context.Context, o *operator.Operator, email string) (output, error) {
		made, err := o.LinkUser(ctx, email)
		return append(row{{"email", email}}, page.row(made)...), err
	})
	return page.before(cmd)
}

func (m *metadata) userResetFactors() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset-factors", Short: "remove the authenticator app and the passkeys of a user who has lost them",
		Long: "Remove the authenticator app, the recovery codes and the passkeys of a user who has lost them, and end all sessions:\n" +
			"the password suffices to log in. Be sure who asks. Where mails are sent, the user is told.",
	}
	m.mail.OutboxFlags(cmd)
	return m.onEmail(m.asking(cmd), func(ctx context.Context, o *operator.Operator, email string) (output, error) {
		const what = "Remove the authenticator app and the passkeys of this user, so that the password suffices?"
		if err := m.confirm(cmd, email, what, row{{"email", email}}); err != nil {
			return nil, err
		}
		return row{{"email", email}, {"factors", "removed"}}, o.ResetFactors(ctx, email)
	})
}

func (m *metadata) userUnlinkSignOn() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unlink-sign-on", Short: "forget who a user is to the issuer, who has another subject for the user by now",
		Long: "Forget by which subject an issuer knows a user, and end all sessions: the next sign-on with the address of the user\n" +
			"makes the link again. Be sure whose the address is by now. Where mails are sent, the user is told.",
	}
	m.mail.OutboxFlags(cmd)
	return m.onEmail(m.asking(cmd), func(ctx context.Context, o *operator.Operator, email string) (output, error) {
		const what = "Let whoever signs on next with this address be this user?"
		if err := m.confirm(cmd, email, what, row{{"email", email}}); err != nil {
			return nil, err
		}
		return row{{"email", email}, {"signOn", "unlinked"}}, o.UnlinkSignOn(ctx, email)
	})
}

func (m *metadata) userSessions() *cobra.Command {
	return m.onEmail(&cobra.Command{Use: "sessions", Short: "list where a user is logged in, last used first"},
		func(ctx context.Context, o *operator.Operator, email string) (output, error) {
			list, err := o.UserSessions(ctx, email)
			return tableOf(list, sessionRow).only("usedAt", "client", "status", "createdAt", "agent"), err
		})
}

func sessionRow(s persons.Session) row {
	return row{
		{"sessionId", s.ID}, {"status", s.Status}, {"createdAt", s.CreatedAt}, {"usedAt", s.UsedAt}, {"provedAt", s.ProvedAt},
		{"provedBy", s.ProvedBy}, {"client", s.Client}, {"agent", some(s.Agent)},
	}
}

func (m *metadata) userEndSessions() *cobra.Command {
	return m.onEmail(&cobra.Command{Use: "end-sessions", Short: "log a user out everywhere, at once"},
		func(ctx context.Context, o *operator.Operator, email string) (output, error) {
			ended, err := o.EndSessions(ctx, email)
			return row{{"email", email}, {"ended", ended}}, err
		})
}

// onEmail makes a command one about a user, whom a flag names.
func (m *metadata) onEmail(
	cmd *cobra.Command, do func(context.Context, *operator.Operator, string) (output, error),
) *cobra.Command {
	var email string
	cmd.Flags().StringVar(&email, "email", "", "email address of the user")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) { return do(ctx, o, email) })
	}
	return required(cmd, "email")
}

// page is where the links of a command lead.
type page struct {
	dashboard string
	mail.Pages
}

// before has a command want the dashboard's address before it does anything.
func (p *page) before(cmd *cobra.Command) *cobra.Command {
	wiring.DashboardFlag(cmd, &p.dashboard)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := settings.Require(cmd, "dashboard-url"); err != nil {
			return err
		}
		if p.Pages, err = mail.DashboardPages(p.dashboard); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

func (p *page) row(l people.Link) row {
	return row{{"link", p.Reset.With(l.Token)}, {"expiresAt", l.EndsAt}, {"mailed", l.Mailed}}
}
