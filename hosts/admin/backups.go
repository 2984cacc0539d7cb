package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/ports"
)

func (m *metadata) backup() *cobra.Command {
	return group("backup", "backup files of databases", m.backupList(), m.backupAdopt(), m.backupForget())
}

func (m *metadata) backupList() *cobra.Command {
	var of ports.BackupFilter
	var db, owner string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list the backups of a database, of an account or of all, the newest first", Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&db, "database", "", "only those of a "+called[id.DatabaseID]())
	f.StringVar(&owner, "account", "", "only those of an "+called[id.AccountID]())
	f.BoolVar(&of.Unverified, "unverified", false, "only those that were never restored and compared")
	f.IntVar(&limit, "limit", 0, limitUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return m.work(cmd, func(ctx context.Context, o *operator.Operator) (_ output, err error) {
			if of.DatabaseID, err = findAny[id.DatabaseID](ctx, o, "database", db); err != nil {
				return nil, err
			}
			if of.AccountID, err = findAny[id.AccountID](ctx, o, "account", owner); err != nil {
				return nil, err
			}
			found, err := o.Backups(ctx, of, ports.Page{Limit: limit})
			return tableOf(found, backupRow).only("fileName", "sizeBytes", "trigger", "verifiedAt", "database", "server", "email"), err
		})
	}
	return cmd
}

func backupRow(b ports.BackupEntry) row {
	return append(row{
		{"databaseId", b.DatabaseID}, {"database", b.Database}, {"databaseStatus", b.Status}, {"accountId", b.AccountID},
		{"email", b.Email}, {"serverId", b.ServerID}, {"server", b.Server},
	}, fileRow(b.Backup)...)
}

func fileRow(b backup.Backup) row {
	return row{
		{"fileName", b.Filename}, {"sizeBytes", terminal.Size(b.SizeBytes)}, {"trigger", b.Trigger}, {"createdAt", b.CreatedAt},
		{"verifiedAt", b.VerifiedAt}, {"lastReadAt", b.LastReadAt}, {"damagedAt", b.DamagedAt}, {"expiresAt", b.ExpiresAt},
		{"checksumSha256", b.ChecksumSHA256}, {"operationId", b.OperationID},
	}
}
