package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) account() *cobra.Command {
	var plan string
	create := m.accountCreate("make a user and an account that the user owns", &plan)
	create.Flags().StringVar(&plan, "plan", string(account.Free), "free, pro or business")
	return group("account", "accounts and their plans", m.accountList(), m.accountShow(), create,
		m.accountSet(), m.accountSuspend(), m.accountResume())
}

func (m *metadata) accountCreate(short string, plan *string) *cobra.Command {
	cmd := &cobra.Command{Use: "create", Short: short}
	return m.newAccount(cmd, plan, func(ctx context.Context, o *operator.Operator, n operator.NewAccount) (output, error) {
		a, u, err := o.CreateAccount(ctx, n)
		return row{{"accountId", a.ID}, {"userId", u.ID}, {"plan", a.Plan}}, err
	})
}

// newAccount makes a command one that makes a user and an account.
func (m *metadata) newAccount(
	cmd *cobra.Command, plan *string, do func(context.Context, *operator.Operator, operator.NewAccount) (output, error),
) *cobra.Command {
	var n operator.NewAccount
	cmd.Flags().StringVar(&n.Email, "email", "", "email address of the owner")
	cmd.Flags().StringVar(&n.Name, "name", "", "name of the owner")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if n.Plan, err = account.ParsePlan(*plan); err != nil {
			return err
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) { return do(ctx, o, n) })
	}
	return required(cmd, "email", "name")
}

// plansOwn, given as a number, takes an exception back.
const plansOwn = -1

func (m *metadata) accountSet() *cobra.Command {
	var accountID, plan string
	var databases, connections, days, back, postgres int
	databaseBytes, backupBytes := byteCount(plansOwn), byteCount(plansOwn)
	var verify, copies bool
	var validity time.Duration
	cmd := &cobra.Command{
		Use: "set", Short: "change an account's plan and the exceptions to it; -1 restores the plan's own number", Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&accountID, "account", "", called[id.AccountID]())
	f.StringVar(&plan, "plan", "", "free, pro or business")
	f.IntVar(&databases, "max-databases", plansOwn, "most databases that the account may have, previews included")
	f.IntVar(&connections, "connection-cap", plansOwn, "server connections of each new managed database")
	f.IntVar(&days, "backup-days", plansOwn, "days that a new backup is kept")
	f.IntVar(&back, "pitr-days", plansOwn, "days back that recovery to a point in time reaches; 0 means that there is none")
	f.Var(&databaseBytes, "database-bytes", "bytes that one database may take, as in 20GiB; above that it is read-only by default")
	f.Var(&backupBytes, "backup-bytes", "bytes that the backup files of one database may take, as in 100GiB")
	f.BoolVar(&verify, "verify-backups", true, "verify each backup by restoring it")
	f.DurationVar(&validity, "credential-validity", 0,
		"how long a password of an additional role is valid, at least 5m; 0 means forever")
	f.BoolVar(&copies, "preview-copies", false, "let previews have data of the account's databases, as they were at a moment")
	f.IntVar(&postgres, "postgres-version", plansOwn, fmt.Sprintf("major version of PostgreSQL of a new database that asks for "+
		"none, %d to %d", pgversion.Oldest, pgversion.Newest))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := f.Changed
		if given("plan") {
			if _, err := account.ParsePlan(plan); err != nil {
				return err
			}
		}
		return m.changeAccount(cmd, accountID, func(a *account.Account) {
			if given("plan") {
				a.Plan = account.Plan(plan)
			}
			set(given("max-databases"), &a.MaxDatabases, databases, databases != plansOwn)
			set(given("connection-cap"), &a.ConnectionCap, connections, connections != plansOwn)
			set(given("backup-days"), &a.BackupDays, days, days != plansOwn)
			set(given("pitr-days"), &a.PITRDays, back, back != plansOwn)
			set(given("database-bytes"), &a.DatabaseBytes, int64(databaseBytes), databaseBytes != plansOwn)
			set(given("backup-bytes"), &a.BackupBytes, int64(backupBytes), backupBytes != plansOwn)
			set(given("verify-backups"), &a.VerifyBackups, verify, true)
			set(given("preview-copies"), &a.PreviewCopies, copies, copies)
			set(given("postgres-version"), &a.PostgresVersion, postgres, postgres != plansOwn)
			set(given("credential-validity"), &a.CredentialValidity, validity, validity != 0)
		})
	}
	return required(cmd, "account")
}

// set changes an exception that was given: to the value, or back to the plan's.
func set[T any](given bool, exception **T, value T, keep bool) {
	switch {
	case given && keep:
		*exception = &value
	case given:
		*exception = nil
	}
}

func (m *metadata) changeAccount(cmd *cobra.Command, text string, change func(*account.Account)) error {
	return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
		accountID, err := find[id.AccountID](ctx, o, "account", text)
		if err != nil {
			return nil, err
		}
		a, err := o.ChangeAccount(ctx, accountID, change)
		if err != nil {
			return nil, err
		}
		email, err := ownerOf(ctx, o, a.ID)
		q := a.Quotas()
		return row{
			{"accountId", a.ID}, {"email", email}, {"plan", a.Plan}, {"maxDatabases", q.Databases}, {"connectionCap", q.ConnectionCap},
			{"backupDays", q.BackupDays}, {"verifyBackups", q.VerifyBackups},
			{"databaseBytes", terminal.Size(q.DatabaseBytes)}, {"backupBytes", terminal.Size(q.BackupBytes)},
			{"credentialValidity", q.CredentialValidity.String()},
		}, err
	})
}

// ownerOf is the email address of an account's owner.
func ownerOf(ctx context.Context, o *operator.Operator, a id.AccountID) (email any, err error) {
	found, err := o.Accounts(ctx, ports.AccountFilter{ID: a}, ports.Page{Limit: 1})
	if len(found) > 0 {
		email = found[0].Email
	}
	return email, err
}
