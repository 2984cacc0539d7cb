package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// doctor shows what differs, and fails where something does that was not repaired.
func (m *metadata) doctor() *cobra.Command {
	var only string
	var how checkups.Options
	cmd := &cobra.Command{
		Use: "doctor", Short: "compare the servers with the metadata, and list what differs", Args: cobra.NoArgs,
		Long: "Compare what each server has with the metadata: databases, roles, limits, settings, PgBouncer, copies, jobs, and the\n" +
			"files of backups. What an open operation is about is left alone, and what differs is looked at again for some seconds,\n" +
			"so the service may be at work meanwhile. Each line says what --repair would do about it; nothing that could lose data\n" +
			"is ever done. The exit status is 1 where something differs that was not repaired, and is more than a notice.",
	}
	f := cmd.Flags()
	f.StringVar(&only, "server", "", called[id.ServerID]()+"; by default all servers that are enabled or have databases")
	f.BoolVar(&how.Repair, "repair", false, "do what each line says")
	f.BoolVar(&how.Deep, "deep", false, "also look into every database, and compare every backup file with its checksum")
	f.DurationVar(&how.Patience, "patience", checkups.DefaultPatience, "how long what differs is looked at again")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		left, unread := 0, error(nil)
		err := m.work(cmd, func(ctx context.Context, o *operator.Operator) (output, error) {
			servers, err := o.Patients(ctx)
			if only != "" {
				servers, err = serversOf(ctx, o, only)
			}
			if err != nil {
				return nil, err
			}
			rows := table{}
			for _, s := range servers {
				found, err := o.Examine(ctx, s, how)
				if err != nil {
					unread = errors.Join(unread, fmt.Errorf("server %s: %w", s.Name, err))
					continue
				}
				for _, d := range found {
					if rows = append(rows, diagnosisRow(s, d)); !d.Repaired && !d.Code.Notice() {
						left++
					}
				}
			}
			return rows.only("server", "code", "repair", "outcome", "databaseId", "finding"), nil
		})
		if err == nil && left > 0 {
			err = errDiffers(left)
		}
		return errors.Join(err, unread)
	}
	return cmd
}

func errDiffers(left int) error {
	if left == 1 {
		return errors.New("one difference")
	}
	return fmt.Errorf("%d differences", left)
}

func diagnosisRow(s server.Server, d checkups.Diagnosis) row {
	repair, outcome := any(nil), any(nil)
	if r := d.Repair(); r != "" {
		repair = string(r)
	}
	switch {
	case d.Repaired:
		outcome = "repaired"
	case d.Failed != nil:
		outcome = "not repaired: " + d.Failed.Error()
	}
	db := any(nil)
	if d.DatabaseID != "" {
		db = d.DatabaseID
	}
	return row{
		{"server", s.Name}, {"serverId", s.ID}, {"code", string(d.Code)}, {"notice", d.Code.Notice()},
		{"databaseId", db}, {"finding", d.String()}, {"repair", repair}, {"outcome", outcome},
	}
}
