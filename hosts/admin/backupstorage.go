package admin

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
)

func (m *metadata) storage() *cobra.Command {
	return group("storage", "where agents keep backups", m.storageCheck())
}

var errStorageWrong = errors.New("a backup cannot be stored everywhere")

func (m *metadata) storageCheck() *cobra.Command {
	var named string
	wrong := false
	cmd := m.command("check", "have agents store a little where they keep backups, read it and remove it",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			var of id.ServerID
			if named != "" {
				found, err := find[id.ServerID](ctx, o, "server", named)
				if err != nil {
					return nil, err
				}
				of = found
			}
			all, err := o.CheckStorage(ctx, of)
			for _, c := range all {
				wrong = wrong || c.Wrong != ""
			}
			return tableOf(all, storageRow), err
		})
	cmd.Long = "Say of each server where its agent keeps backups, and in one line what is wrong there: the bucket, the key, the\n" +
		"clock, the CA, or the network. The exit status is 1 where something is."
	cmd.Flags().StringVar(&named, "server", "", called[id.ServerID]()+"; without it, all servers")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return err
		}
		if wrong {
			return errStorageWrong
		}
		return nil
	}
	return cmd
}

func storageRow(c operator.StorageChecked) row {
	return row{{"serverId", c.Server.ID}, {"name", c.Server.Name}, {"where", c.Where}, {"wrong", c.Wrong}}
}
