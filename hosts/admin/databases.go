package admin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) databaseList() *cobra.Command {
	var of, on string
	var statuses []string
	var deleted bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list databases, the oldest first; deleted ones only with --deleted or --status", Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&of, "account", "", "only those of an "+called[id.AccountID]())
	f.StringVar(&on, "server", "", "only those on a "+called[id.ServerID]())
	f.StringSliceVar(&statuses, "status", nil, "only those with one of these statuses: "+joined(database.Statuses))
	f.BoolVar(&deleted, "deleted", false, "only those that are deleted and not purged")
	f.IntVar(&limit, "limit", 0, limitUsage)
	cmd.MarkFlagsMutuallyExclusive("status", "deleted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter := ports.DatabaseFilter{Statuses: statusesFor(deleted)}
		if len(statuses) > 0 {
			filter.Statuses = nil
		}
		for _, text := range statuses {
			status, err := fault.OneOf("status", text, database.Statuses...)
			if err != nil {
				return err
			}
			filter.Statuses = append(filter.Statuses, status)
		}
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (_ output, err error) {
			if filter.AccountID, err = findAny[id.AccountID](ctx, o, "account", of); err != nil {
				return nil, err
			}
			if filter.ServerID, err = findAny[id.ServerID](ctx, o, "server", on); err != nil {
				return nil, err
			}
			found, err := o.Databases(ctx, filter, ports.Page{Limit: limit})
			return tableOf(found, databaseRow).only("databaseId", "name", "status", "server", "email", "size", "storageStatus"), err
		})
	}
	return cmd
}

// statusesFor are those of the databases that are deleted, or of all others.
func statusesFor(deleted bool) (list []database.Status) {
	for _, s := range database.Statuses {
		if s.Gone() == deleted {
			list = append(list, s)
		}
	}
	return list
}

func joined[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

func databaseRow(r ports.DatabaseEntry) row {
	return row{
		{"databaseId", r.ID}, {"name", r.Name}, {"displayName", r.DisplayName}, {"status", r.Status}, {"accountId", r.AccountID},
		{"email", r.Email}, {"serverId", r.ServerID}, {"server", r.Server}, {"createdAt", r.CreatedAt},
		{"size", usage[terminal.Size]{terminal.Size(r.SizeBytes), terminal.Size(r.StorageQuota())}}, {"sizedAt", r.SizedAt},
		{"storageStatus", r.StorageStatus}, {"backupBytes", terminal.Size(r.InBackups)}, {"scheduledBackup", r.Schedule},
		{"nextBackupAt", r.NextBackupAt}, {"environment", some(string(r.Environment))}, {"roleModel", r.RoleModel},
		{"postgresVersion", r.PostgresVersion}, {"wayBack", orNull(r.WayBack)},
		{"connectionCap", r.ConnectionCap}, {"namespaceId", some(string(r.NamespaceID))}, {"enrolments", r.Enrolments},
	}
}

func (m *metadata) databaseShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show", Short: "show a database, also a deleted one: sizes and quotas, its open operation, backups, logins and people",
	}
	return onID(m, cmd, "database", func(ctx context.Context, o *operator.Operator, of id.DatabaseID) (output, error) {
		d, err := o.DatabaseDetails(ctx, of)
		if err != nil {
			return nil, err
		}
		shown := databaseRow(d.DatabaseEntry)
		for i, f := range shown {
			if f.Name == "backupBytes" {
				of := terminal.Size(d.Account.Quotas().BackupBytes)
				shown[i].Value = usage[terminal.Size]{terminal.Size(d.InBackups), of}
			}
		}
		shown = append(shown, row{
			{"plan", d.Plan}, {"host", d.Host}, {"port", d.Port}, {"logins", d.Logins}, {"roles", counts(d.Roles)},
			{"members", d.Members}, {"allowlist", d.Allowlist}, {"backups", d.Backups}, {"lastBackup", nil},
			{"lastVerifiedBackup", nil}, {"openOperation", nil}, {"deletion", nil},
		}...)
		shown.set("lastBackup", d.LastBackup != nil, func() row { return fileRow(*d.LastBackup) })
		shown.set("lastVerifiedBackup", d.LastVerified != nil, func() row { return fileRow(*d.LastVerified) })
		shown.set("openOperation", d.Open != nil, func() row { return operationRow(*d.Open) })
		shown.set("deletion", d.Deleted != nil, func() row { return tombstoneRow(*d.Deleted, d.Recovery) })
		return shown, nil
	})
}

// set gives a field that is there a value, if there is one.
func (r row) set(name string, given bool, value func() row) {
	for i := range r {
		if r[i].Name == name && given {
			r[i].Value = value()
		}
	}
}

// databaseNamed are the fields that name a database.
func databaseNamed(ctx context.Context, o *operator.Operator, db id.DatabaseID) (row, error) {
	found, err := o.Databases(ctx, ports.DatabaseFilter{ID: db}, ports.Page{Limit: 1})
	if err != nil || len(found) == 0 { // it was purged just now
		return row{{"databaseId", db}, {"database", nil}}, err
	}
	return row{{"databaseId", db}, {"database", found[0].Name}}, nil
}

func tombstoneRow(s deletion.Scene, recovery deletion.RecoveryStatus) row {
	t := s.Tombstone
	return row{
		{"operationId", t.OperationID}, {"deletedAt", t.DeletedAt}, {"purgeAfter", t.PurgeAfter},
		{"recoveryStatus", recovery}, {"statusBefore", t.StatusBefore}, {"fileName", some(string(t.Filename))},
		{"members", t.Members}, {"keys", t.Keys}, {"allowlist", t.Allowlist}, {"recoveryOperationId", some(string(t.RecoveryID))},
	}
}
