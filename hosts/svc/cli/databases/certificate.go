package databases

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func databasesCertificate(a *app.App) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "certificate DATABASE", Short: "Show the signed statement that a second of a database was had back",
		Args: cobra.ExactArgs(1),
		Long: `Show the certificate of the last drill that has proven a second of a database: a signed statement that the service
had the database back as it was then, read all of it, and compared it with what it knew. Its signature is checked against
the keys that the service publishes. With -o, it is stored as the API gives it, for those who check it themselves:
docs/use/backups.md says how.`,
		Example: `  svc databases certificate orders
  svc databases certificate orders -o certificate.json`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				of, err := everNamed(ctx, a, c, args[0])
				if err != nil {
					return err
				}
				signed, err := c.Recovery.GetCertificate(ctx, of)
				if err != nil {
					return err
				}
				if err := app.CheckSigned(ctx, c, signed, certificate.RecoveryFormat); err != nil {
					return err
				}
				var says certificate.Recovery
				if err := json.Unmarshal(signed.Document, &says); err != nil {
					return err
				}
				if says.DatabaseID != of {
					return fmt.Errorf("the certificate is of another database, %s", says.DatabaseID)
				}
				if output != "" {
					if err := app.StoreNew(output, signed); err != nil {
						return err
					}
					a.Note("the certificate is stored in %s", output)
				}
				return a.ShowRecord(signed, recoveryFields(says)...)
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "store the certificate in this new file")
	return cmd
}

func recoveryFields(says certificate.Recovery) []app.Field {
	fields := []app.Field{
		{"Second", says.PointInTime},
		{"Database", says.Database},
		{"Database ID", says.DatabaseID},
		{"Proven", says.ProvenAt},
		{"Size", terminal.Size(says.Contents.Bytes)},
		{"Tables", says.Contents.Tables},
		{"Rows", says.Contents.Rows},
		{"Marks", says.Canaries},
	}
	if b := says.Backup; b != nil {
		compared := fmt.Sprintf("%d differences, as it was written to since", b.Differences)
		if b.Unchanged {
			compared = "equal: nothing was written since"
		}
		fields = append(fields, app.Field{"Backup before", string(b.Filename) + ": " + compared})
	}
	return append(fields, app.Field{"PostgreSQL", says.ServerVersion}, app.Field{"Key", says.KeyID}, app.Field{"Signature", "valid"})
}
