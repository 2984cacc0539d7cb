package backups

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func backupsUpload(a *app.App) *cobra.Command {
	var wait app.Waiting
	var incomplete, shrink bool
	cmd := &cobra.Command{
		Use: "upload DATABASE FILE", Short: "Replace what a single-login database holds by a dump of your own",
		Args: cobra.ExactArgs(2),
		Long: `Replace what a database holds by a dump of your own: SQL text of pg_dump, compressed by gzip. All that the database
holds is lost, and all connections are closed. The dump is restored beside the database first, so that a restore that fails
changes nothing.

The file is looked at before anything is sent: what is in another format, damaged, or without pg_dump's closing line is refused.
--accept-incomplete sends a file without that line, such as that of another program. Without pipefail, a pg_dump that fails leaves
a file that looks like a good one.

A restore that would remove more than nine tenths of the rows or tables fails, and changes nothing either, unless
--confirm-shrink says that it is meant.`,
		Example: `  set -o pipefail
  pg_dump --format=plain --no-owner --no-privileges "$ELSEWHERE" | gzip > orders.sql.gz
  svc backups upload orders orders.sql.gz --wait`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveDefault // a file
			}
			return a.CompleteDatabase(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := openDump(args[1], incomplete)
			if err != nil {
				return err
			}
			defer f.Close()
			what := "This replaces all that " + args[0] + " holds by the dump " + filepath.Base(args[1]) +
				", and closes all its connections."
			if err := a.Ask(args[0], what); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				sent, err := f.send(ctx, a, c, of)
				if err != nil {
					return err
				}
				begun, err := c.Restores.CompleteUpload(ctx, of, wire.CompleteUpload{
					UploadID: sent, ConfirmDisconnect: true, ConfirmShrink: shrink, AcceptIncomplete: incomplete,
				})
				if err != nil {
					return a.MayHaveBegun(err, args[0])
				}
				return wait.End(ctx, a, c, begun)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&incomplete, "accept-incomplete", false, "send it without pg_dump's closing line")
	cmd.Flags().BoolVar(&shrink, "confirm-shrink", false, "let it remove more than nine tenths of the rows or tables")
	wait.Add(cmd)
	return a.Confirmed(cmd)
}

// dump is a file that may be sent.
type dump struct {
	*os.File
	size int64
	sum  string
}

// openDump looks at a whole file. The database server reads it as SQL, and decides.
func openDump(path string, acceptIncomplete bool) (d dump, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return d, err
	case !info.Mode().IsRegular():
		return d, app.Usage("FILE: %s is no file", path)
	case info.Size() == 0:
		return d, fmt.Errorf("%s is empty", path)
	case info.Size() > upload.MostBytes:
		return d, fmt.Errorf("%s has %s, and %s is the most", path, terminal.Bytes(info.Size()), terminal.Bytes(upload.MostBytes))
	}
	sum := sha256.New()
	if err := lookAt(io.TeeReader(f, sum), acceptIncomplete); err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	return dump{f, info.Size(), hex.EncodeToString(sum.Sum(nil))}, nil
}

func lookAt(file io.Reader, acceptIncomplete bool) error {
	packed := bufio.NewReaderSize(file, 1<<16)
	begins, err := packed.Peek(upload.MostSniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := upload.Packed(begins); err != nil {
		return err
	}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return damaged(err)
	}
	text := bufio.NewReaderSize(unpacked, 1<<16)
	if begins, err = text.Peek(upload.MostSniffed); err != nil && !errors.Is(err, io.EOF) {
		return damaged(err)
	}
	if err := upload.Plain(begins); err != nil {
		return err
	}
	ending, err := upload.ReadEnding(text)
	if err != nil {
		return damaged(err)
	}
	err = ending.Check(acceptIncomplete)
	if err != nil && !acceptIncomplete {
		err = app.Next(err, "--accept-incomplete sends it all the same, unless it makes nothing")
	}
	return err
}

func damaged(err error) error { return fmt.Errorf("it is damaged, or a part of a file: %w", err) }

// send sends the file, and shows how much of it is there.
func (d dump) send(ctx context.Context, a *app.App, c *apiclient.Client, of id.DatabaseID) (id.UploadID, error) {
	announced, err := c.Restores.AnnounceUpload(ctx, of, wire.AnnounceUpload{SizeBytes: d.size, ChecksumSHA256: d.sum})
	if err != nil {
		return "", err
	}
	shown := newMeter(a, filepath.Base(d.Name()), d.size, 0)
	defer shown.end()
	return announced.UploadID, c.Restores.SendUpload(ctx, of, announced.UploadID, metered{d.File, shown}, d.size)
}

// metered shows what is read for the first time.
type metered struct {
	io.ReaderAt
	shown *meter
}

// ReadAt implements io.ReaderAt.
func (m metered) ReadAt(p []byte, at int64) (int, error) {
	n, err := m.ReaderAt.ReadAt(p, at)
	if first := at + int64(n) - m.shown.have; first > 0 {
		_, _ = m.shown.Write(p[int64(n)-min(first, int64(n)) : n])
	}
	return n, err
}
