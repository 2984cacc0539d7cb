package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) accountList() *cobra.Command {
	var of ports.AccountFilter
	var plan string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list the accounts with their owners and what they use, the oldest first", Args: cobra.NoArgs,
		Long: "List the accounts with their owners and what they use, the oldest first: databases against the quota, the bytes of\n" +
			"databases and of backup files, and the keys of the account that are not revoked. Deleted databases count until they\n" +
			"are purged in \"deleted\" alone.",
	}
	f := cmd.Flags()
	f.StringVar(&plan, "plan", "", "only accounts on this plan: free, pro or business")
	f.StringVar(&of.Email, "email", "", "only accounts with this in the owner's email address, in whatever case")
	f.IntVar(&limit, "limit", 0, limitUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if plan != "" {
			if of.Plan, err = account.ParsePlan(plan); err != nil {
				return err
			}
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			found, err := o.Accounts(ctx, of, ports.Page{Limit: limit})
			return tableOf(found, accountRow).only(
				"accountId", "email", "plan", "suspendedAt", "databases", "bytes", "backupBytes", "keys", "name"), err
		})
	}
	return cmd
}

func accountRow(a ports.AccountEntry) row {
	r := append(row{
		{"accountId", a.ID}, {"email", a.Email}, {"name", a.Name}, {"userId", a.OwnerID}, {"plan", a.Plan},
	}, suspensionRow(a.Suspension)...)
	return append(r, row{
		{"createdAt", a.CreatedAt}, {"databases", usage[int]{a.Databases, a.Quotas().Databases}}, {"deleted", a.Deleted},
		{"bytes", terminal.Size(a.Bytes)}, {"backupBytes", terminal.Size(a.InBackups)}, {"keys", a.Keys},
	}...)
}

func (m *metadata) accountShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show", Short: "show an account: its plan, the exceptions to it, its quotas, databases, keys and namespaces",
		Long: "Show an account: its plan, the exceptions to it, its quotas, databases, keys and namespaces. \"overrides\" has the\n" +
			"exceptions that account set has made, \"quotas\" what holds for the account.",
	}
	return onID(m, cmd, "account", func(ctx context.Context, o *operator.Operator, of id.AccountID) (output, error) {
		a, err := o.AccountDetails(ctx, of, ports.Page{})
		if err != nil {
			return nil, err
		}
		q := a.Quotas()
		return append(accountRow(a.AccountEntry), row{
			{"autoEnroll", a.AutoEnroll}, {"overrides", overridesRow(a.Overrides)},
			{"quotas", row{
				{"databases", q.Databases}, {"connectionCap", q.ConnectionCap}, {"backupDays", q.BackupDays},
				{"verifyBackups", q.VerifyBackups}, {"databaseBytes", terminal.Size(q.DatabaseBytes)},
				{"backupBytes", terminal.Size(q.BackupBytes)}, {"credentialValidity", q.CredentialValidity.String()},
			}},
			{"databaseList", tableOf(a.Owned, func(r ports.DatabaseEntry) row { return ownedRow(r, q) })},
			{"keyList", keyTable(a.KeyList, "email")},
			{"namespaceList", namespaceTable(a.Namespaces, "email")},
		}...), nil
	})
}

// overridesRow are the exceptions that there are.
func overridesRow(o account.Overrides) any {
	var r row
	for _, f := range []struct {
		name  string
		given bool
		value func() any
	}{
		{"maxDatabases", o.MaxDatabases != nil, func() any { return *o.MaxDatabases }},
		{"connectionCap", o.ConnectionCap != nil, func() any { return *o.ConnectionCap }},
		{"backupDays", o.BackupDays != nil, func() any { return *o.BackupDays }},
		{"pitrDays", o.PITRDays != nil, func() any { return *o.PITRDays }},
		{"verifyBackups", o.VerifyBackups != nil, func() any { return *o.VerifyBackups }},
		{"databaseBytes", o.DatabaseBytes != nil, func() any { return terminal.Size(*o.DatabaseBytes) }},
		{"backupBytes", o.BackupBytes != nil, func() any { return terminal.Size(*o.BackupBytes) }},
		{"previewCopies", o.PreviewCopies != nil, func() any { return *o.PreviewCopies }},
		{"postgresVersion", o.PostgresVersion != nil, func() any { return *o.PostgresVersion }},
		{"credentialValidity", o.CredentialValidity != nil, func() any { return o.CredentialValidity.String() }},
	} {
		if f.given {
			r = append(r, field{f.name, f.value()})
		}
	}
	if r == nil {
		return nil
	}
	return r
}

// ownedRow is a database of an account with what it uses of the account's quotas.
func ownedRow(r ports.DatabaseEntry, q account.Quotas) row {
	return row{
		{"databaseId", r.ID}, {"name", r.Name}, {"status", r.Status}, {"server", r.Server},
		{"size", usage[terminal.Size]{terminal.Size(r.SizeBytes), terminal.Size(q.DatabaseBytes)}},
		{"backups", usage[terminal.Size]{terminal.Size(r.InBackups), terminal.Size(q.BackupBytes)}},
	}
}
