package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/snapshots"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// installation holds what is done about the metadata as a whole.
func (m *metadata) installation() *cobra.Command {
	return group("installation", "snapshots of the metadata, and making them anew from one", m.snapshot(), m.rebuild())
}

func (m *metadata) snapshot() *cobra.Command {
	cmd := m.command("snapshot", "take a snapshot of the metadata now, and have servers keep it",
		func(ctx context.Context, o *operator.Operator) (output, error) {
			k, err := o.Snapshots.Take(ctx)
			return row{
				{"snapshot", k.Name}, {"at", k.Name.At()}, {"sizeBytes", terminal.Size(k.Bytes)}, {"servers", strings.Join(k.Servers, ", ")},
			}, err
		})
	cmd.Long = "Take a snapshot of the metadata now. Batch hosts do that by themselves; this is for the moment before something\n" +
		"that may go wrong. It needs the key ring."
	return cmd
}

// rebuilding says from what the metadata are made anew.
type rebuilding struct {
	from         snapshotSource
	installation string
	name         string
	list         bool
}

func (m *metadata) rebuild() *cobra.Command {
	var r rebuilding
	cmd := &cobra.Command{
		Use: "rebuild", Short: "make the metadata anew that are lost, from a snapshot that a server has kept", Args: cobra.NoArgs,
		Long: "Make the metadata anew in an empty database, which need not have been migrated. The newest snapshot is taken that is\n" +
			"whole, or the one that --snapshot names. They come from where a server keeps backups: a folder, an object store with\n" +
			"that server's prefix, or its agent. The key ring must be the one that the installation had. No host may run.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "keyring-file"); err != nil {
				return err
			}
			box, err := secretbox.Load(m.keyring)
			if err != nil {
				return err
			}
			source, err := r.from.open(cmd)
			if err != nil {
				return err
			}
			all, err := r.found(cmd.Context(), source)
			if err != nil {
				return err
			}
			if r.list {
				return m.show(cmd, tableOf(all, snapshotRow))
			}
			if err := settings.Require(cmd, "metadata-url"); err != nil {
				return err
			}
			return m.rebuildFrom(cmd, box, source, all)
		},
	}
	r.from.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.list, "list", false, "only list the snapshots that there are, the newest first")
	f.StringVar(&r.name, "snapshot", "", "name of a snapshot, as --list shows it; without it, the newest that is whole")
	f.StringVar(&r.installation, "installation", "", "ID of the installation, where the server has kept snapshots of several")
	return cmd
}

func snapshotRow(s command.Snapshot) row {
	return row{
		{"snapshot", s.Name}, {"at", s.Name.At()}, {"sizeBytes", terminal.Size(s.Bytes)}, {"installationId", s.InstallationID},
	}
}

var errNoSnapshot = errors.New("there is no snapshot of metadata: is that where a server keeps its backups?")

// found are the snapshots to choose from, the newest first.
func (r *rebuilding) found(ctx context.Context, source snapshotStore) (list []command.Snapshot, err error) {
	all, err := source.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	installations := map[id.InstallationID]bool{}
	for i := range all {
		s := all[len(all)-1-i] // they come by installation and by name
		if r.installation != "" && s.InstallationID != id.InstallationID(r.installation) ||
			r.name != "" && s.Name != snapshot.Name(r.name) {
			continue
		}
		list, installations[s.InstallationID] = append(list, s), true
	}
	switch {
	case len(list) == 0 && len(all) > 0:
		return nil, errors.New("there is no such snapshot; --list shows those that there are")
	case len(list) == 0:
		return nil, errNoSnapshot
	case len(installations) > 1 && !r.list:
		var ids []string
		for of := range installations {
			ids = append(ids, string(of))
		}
		return nil, fmt.Errorf("there are snapshots of several installations: name one with --installation: %s",
			strings.Join(ids, ", "))
	}
	return list, nil
}

// rebuildFrom takes the first of the snapshots that is whole. Whatever fails leaves the database empty.
func (m *metadata) rebuildFrom(
	cmd *cobra.Command, box *secretbox.Box, source snapshotStore, all []command.Snapshot,
) error {
	for i, s := range all {
		head, has, err := m.rebuildOf(cmd.Context(), box, source, s)
		damaged := errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, snapshots.ErrNone) || errors.Is(err, postgres.ErrNoDump)
		switch {
		case damaged && i+1 < len(all):
			fmt.Fprintf(cmd.ErrOrStderr(), "snapshot %s: %v; trying the one before\n", s.Name, err)
			continue
		case errors.Is(err, errSnapshot):
			return fmt.Errorf("snapshot %s: %w", s.Name, err)
		case err != nil:
			return wiring.NotUsed(err)
		}
		return m.show(cmd, row{
			{"snapshot", s.Name}, {"at", s.Name.At()}, {"installationId", s.InstallationID}, {"program", head.Program},
			{"tables", has.Tables}, {"rows", has.Rows},
		})
	}
	return errNoSnapshot
}

// errSnapshot says of an error that it is one of the snapshot, and not of the database.
var errSnapshot = errors.New("it cannot be read")

func (m *metadata) rebuildOf(
	ctx context.Context, box *secretbox.Box, source snapshotStore, s command.Snapshot,
) (head snapshots.Head, has postgres.Contents, err error) {
	src, _, err := source.OpenSnapshot(ctx, s.InstallationID, s.Name)
	if err != nil {
		return head, has, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	defer src.Close()
	opened, err := snapshots.Open(src)
	if err != nil {
		return head, has, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	var failed error
	err = opened.Read(box, s.InstallationID, s.Name, func(r io.Reader) error {
		has, failed = postgres.Rebuild(ctx, postgres.Config{URL: m.url}, postgres.Rebuilding{
			Dump: r, At: system.NewClock().Now(), Crash: wiring.CrashHook(), Details: audit.Details{
				"snapshot": string(s.Name), "installationId": string(s.InstallationID), "operator": person(),
			},
		})
		return failed
	})
	if err != nil && !errors.Is(err, failed) || errors.Is(err, postgres.ErrNoDump) {
		err = fmt.Errorf("%w: %w", errSnapshot, err)
	}
	return opened.Head, has, err
}
