package backups

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func backupsCertificate(a *app.App) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "certificate DATABASE BACKUP|latest", Short: "Show the signed statement that a backup was restored and found equal",
		Long: `Show the certificate of a backup: a signed statement that its file was restored in isolation and found equal to the
database. Its signature is checked against the keys that the service publishes. "latest" is the newest verified backup.

With -o, the certificate is stored as the API gives it, for those who check it themselves: docs/use/backups.md says how. The
checksum in it is that of the file that "svc backups download" stores.`,
		Example: `  svc backups certificate orders latest
  svc backups certificate orders 20260301_113000.sql.gz -o certificate.json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeBackup(a, latest),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBackup(args[1]); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				return saveCertificate(ctx, a, c, of, args[1], output)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "store the certificate in this new file")
	return cmd
}

func saveCertificate(ctx context.Context, a *app.App, c *apiclient.Client, of id.DatabaseID, name, output string) error {
	stored, err := backupNamed(ctx, c, of, name)
	if err != nil {
		return err
	}
	signed, err := c.Certificates.Get(ctx, of, stored.Filename)
	if err != nil {
		return err
	}
	says, err := checkCertificate(ctx, c, signed)
	if err != nil {
		return err
	}
	if says.DatabaseID != of || says.Backup.Filename != stored.Filename || says.Backup.SHA256 != stored.ChecksumSHA256 {
		return fmt.Errorf("the certificate is of another backup, %s of database %s", says.Backup.Filename, says.DatabaseID)
	}
	if output != "" {
		if err := app.StoreNew(output, signed); err != nil {
			return err
		}
		a.Note("the certificate is stored in %s", output)
	}
	return a.ShowRecord(signed, certificateFields(says)...)
}

// checkCertificate checks the signature of a certificate and reads what it says.
func checkCertificate(ctx context.Context, c *apiclient.Client, signed wire.Certificate) (says certificate.Document, err error) {
	if err := app.CheckSigned(ctx, c, signed, certificate.Format); err != nil {
		return says, err
	}
	return says, json.Unmarshal(signed.Document, &says)
}

func certificateFields(says certificate.Document) []app.Field {
	rows, compared := int64(0), "numbers of rows and objects"
	for _, t := range says.Tables {
		rows += t.Rows
	}
	if says.Comparison == certificate.ByContents {
		compared = "every row of every table"
	}
	return []app.Field{
		{"Backup", says.Backup.Filename},
		{"Database", says.Database},
		{"Database ID", says.DatabaseID},
		{"Created", says.Backup.CreatedAt},
		{"Size", terminal.Size(says.Backup.SizeBytes)},
		{"SHA-256", says.Backup.SHA256},
		{"Verified", says.VerifiedAt},
		{"Compared", compared},
		{"Tables", len(says.Tables)},
		{"Rows", rows},
		{"PostgreSQL", says.ServerVersion},
		{"Key", says.KeyID},
		{"Signature", "valid"},
	}
}
