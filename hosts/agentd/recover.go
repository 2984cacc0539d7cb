package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// recoverCommand is "pgherd agent recover": a lost server comes back from its archive, before PostgreSQL runs.
func recoverCommand() *cobra.Command {
	var r agent.Rebuild
	var kept Archive
	var store s3.Config
	var keyFile, at string
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "bring a server that is lost back from its archive, as the very same, where PostgreSQL does not run yet",
		Long: "Bring a server that is lost, with its disk, back from its archive: all databases, with their logins and\n" +
			"passwords, as they were at the last commit that the archive has. PostgreSQL and pgBackRest are installed, and\n" +
			"no server runs in --data-dir, which is empty or not there. Run it as root, or as PostgreSQL's system user. What is\n" +
			"killed goes on when it is run again; --data-dir has the server once all of it is there, and nothing before.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := settings.Require(cmd, "data-dir", "archive-key-file"); err != nil {
				return err
			}
			if r.Passphrase, err = readArchiveKey(keyFile); err != nil {
				return err
			}
			if at != "" {
				if r.At, err = time.Parse(time.RFC3339, at); err != nil {
					return errors.New("--at: it must be like 2026-11-24T10:31:07+01:00")
				}
			}
			if store.Endpoint == "" && r.BackupDir == "" {
				return errors.New("--s3-endpoint or --backup-dir is required: where the archive is")
			}
			if _, err := settings.OpenObjectStore(cmd, store); err != nil { // which checks what it is given
				return err
			}
			if r.Archive = kept.Archive; store.Endpoint != "" {
				r.Bucket = &store
			}
			r.Tell = func(line string) { cmd.PrintErrln(line) }
			wiring.ArmAgent()
			done, err := r.Run(cmd.Context())
			if err != nil {
				return told(err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), cameBack(r.DataDir, done))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.DataDir, "data-dir", "", "PostgreSQL's data directory, such as /var/lib/postgresql/16/main")
	f.StringVar(&keyFile, "archive-key-file", "", "file with the key of the archive, as pgherd admin server archive-key prints it")
	f.StringVar(&at, "at", "", "moment as of which the server comes back, such as 2026-11-24T10:31:07+01:00; by default the last "+
		"commit that the archive has")
	f.StringVar(&r.BackupDir, "backup-dir", "", "the agent's --backup-dir, where the archive is in that folder")
	settings.ObjectStore(cmd, &store)
	kept.programs(f)
	settings.Explicit(cmd, "data-dir", "at") // the agent's variable names a folder above
	return cmd
}

func readArchiveKey(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--archive-key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if (command.SetArchiveKey{Key: key}).Check() != nil {
		return "", fmt.Errorf("--archive-key-file: %s must hold the %d letters and digits of a key, and nothing else", path,
			command.ArchiveKeyLength)
	}
	return key, nil
}

// told says what to do about an error, in one line.
func told(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("it was interrupted: run it again, and it goes on")
	case errors.Is(err, archive.ErrKey):
		return fmt.Errorf("--archive-key-file: %w", err)
	}
	return err
}

// cameBack says what came back, what did not, and what is done next.
func cameBack(dataDir string, done archive.Rebuilt) string {
	const stamp = "2006-01-02 15:04:05Z07:00"
	return fmt.Sprintf("the server %s is back in %s with %d databases, as it was at its last commit of %s (the archive was "+
		"written to until %s): what was committed later is lost. Start PostgreSQL, run pgherd agent init (with --new-passwords "+
		"where the credentials file is lost), and start the agent and PgBouncer", done.Installation, dataDir, done.Databases,
		done.LastCommit.Format(stamp), done.Stored.Format(stamp))
}
