package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
	"github.com/pgherd/pgherd/hosts/svc/cli/databases"
)

// downloading is what is given to "backups download".
type downloading struct {
	output  string
	force   bool
	deleted bool
}

func backupsDownload(a *app.App) *cobra.Command {
	var d downloading
	cmd := &cobra.Command{
		Use: "download DATABASE BACKUP|latest", Short: "Download a backup and check it",
		Long: `Download a backup into the current folder, and hold it against its checksum. "latest" is the newest verified backup.
The file is a SQL dump, compressed by gzip: "gunzip -c FILE | psql" restores it anywhere.

What comes is kept in FILE.partial until all of it is there. A download that was interrupted goes on where it was when the same
command is given again.

With --deleted, it is the backup that was made when a database was deleted; "svc databases deleted" lists these databases.`,
		Example: `  svc backups download orders latest
  svc backups download orders 20260301_113000.sql.gz -o /var/backups/
  svc backups download --deleted orders`,
		Args: func(cmd *cobra.Command, args []string) error {
			if d.deleted {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if d.deleted {
				return databases.CompleteDeleted(a)(cmd, args, typed)
			}
			return completeBackup(a, latest)(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.output == "-" && a.Out.Terminal {
				return app.Usage("-o -: a compressed file would go to the terminal")
			}
			if !d.deleted {
				if err := checkBackup(args[1]); err != nil {
					return err
				}
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				f, err := remote(ctx, a, c, d.deleted, args)
				if err != nil {
					return err
				}
				if d.output == "-" {
					return streamTo(ctx, a, a.Out, f)
				}
				return storeFile(ctx, a, d, f)
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&d.output, "output", "o", "", `store it in this file or folder, or "-" for standard output`)
	f.BoolVar(&d.force, "force", false, "replace the file if there is one")
	f.BoolVar(&d.deleted, "deleted", false, "download the backup of a deleted database")
	return cmd
}

// remoteFile is a file to download, as the API's list has it.
type remoteFile struct {
	Name   backup.Filename
	Size   int64
	SHA256 string
	open   func(context.Context, ...apiclient.Option) (*apiclient.Download, error)
}

// remote finds the file that the arguments name.
func remote(ctx context.Context, a *app.App, c *apiclient.Client, deleted bool, args []string) (f remoteFile, err error) {
	if deleted {
		return remoteDeleted(ctx, a, c, args[0])
	}
	of, err := a.DatabaseNamed(ctx, args[0])
	if err != nil {
		return f, err
	}
	b, err := backupNamed(ctx, c, of, args[1])
	if err != nil {
		return f, err
	}
	open := func(ctx context.Context, o ...apiclient.Option) (*apiclient.Download, error) {
		return c.Backups.Download(ctx, of, b.Filename, o...)
	}
	return checkRemote(remoteFile{b.Filename, b.SizeBytes, b.ChecksumSHA256, open})
}

func remoteDeleted(ctx context.Context, a *app.App, c *apiclient.Client, name string) (f remoteFile, err error) {
	of, err := databases.DeletedNamed(ctx, a, c, name)
	if err != nil {
		return f, err
	}
	idOfDeleted := func(d wire.DeletedDatabase) string { return string(d.ID) }
	d, err := app.Named(c.Databases.ListDeleted().All(ctx), string(of), "deleted database", idOfDeleted)
	if err != nil {
		return f, err
	}
	b := d.DeletionBackup
	if b == nil || b.DownloadURL == nil {
		return f, fmt.Errorf("the backup of the deleted database %s cannot be downloaded: it is %s", d.Name, d.RecoveryStatus)
	}
	open := func(ctx context.Context, o ...apiclient.Option) (*apiclient.Download, error) {
		return c.Databases.DownloadDeletionBackup(ctx, of, o...)
	}
	return checkRemote(remoteFile{b.FileName, b.SizeBytes, b.ChecksumSHA256, open})
}

// checkRemote wants the name of a backup: it is shown, and becomes that of a file.
func checkRemote(f remoteFile) (remoteFile, error) {
	if _, err := backup.ParseFilename(string(f.Name)); err != nil {
		return f, fmt.Errorf("the API calls the file %q, which is no name of a backup", f.Name)
	}
	return f, nil
}

// openRemote opens a file to download, and says when the API goes back to its start.
func openRemote(ctx context.Context, a *app.App, f remoteFile, o ...apiclient.Option) (*apiclient.Download, error) {
	return f.open(ctx, append(o, apiclient.Again(func() {
		a.Note("the API sends the file from its start again: it is compared with what has come before")
	}))...)
}

// errDamaged is a file with another checksum than the API's list has.
var errDamaged = errors.New("what came has another checksum than the backup")

// streamTo writes a file to standard output. Only at its end it is known to be right.
func streamTo(ctx context.Context, a *app.App, to io.Writer, f remoteFile) error {
	d, err := openRemote(ctx, a, f)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // it was read
	meter := newMeter(a, string(f.Name), f.Size, 0)
	defer meter.end()
	_, err = io.Copy(to, io.TeeReader(d, meter))
	switch {
	case ctx.Err() != nil:
		return app.Over(ctx)
	case err != nil:
		return err
	case d.SHA256() != f.SHA256:
		return app.Next(errDamaged, "do not use what was written")
	}
	return nil
}

// stored is what is said of a file that has come.
type stored struct {
	Path           string          `json:"path"`
	Filename       backup.Filename `json:"filename"`
	SizeBytes      int64           `json:"sizeBytes"`
	ChecksumSHA256 string          `json:"checksumSha256"`
}

// store downloads a file into a folder of this machine.
func storeFile(ctx context.Context, a *app.App, d downloading, f remoteFile) error {
	path := app.First(d.output, string(f.Name))
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, string(f.Name))
	}
	if err := d.mayWrite(path); err != nil {
		return err
	}
	p, err := openPartial(path + ".partial")
	if err != nil {
		return err
	}
	defer p.close()
	if err := fill(ctx, a, p, f); err != nil {
		return err
	}
	if err := d.mayWrite(path); err != nil { // Another process may have made it.
		return err
	}
	if err := p.finish(path); err != nil {
		return err
	}
	return a.Say(stored{path, f.Name, f.Size, f.SHA256}, "%s: %s, and the checksum is right.", path, terminal.Bytes(f.Size))
}

// mayWrite refuses to replace a file without --force, and what is no file, a device or a link, always.
func (d downloading) mayWrite(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return app.Next(fmt.Errorf("%s is no regular file", path), "name another file with -o")
	case err == nil && !d.force:
		return app.Next(fmt.Errorf("%s is there already", path), "replace it with --force, or name another file with -o")
	}
	return nil
}

// fill downloads what a partial file lacks. If what it has is of another file, it is begun anew.
func fill(ctx context.Context, a *app.App, p *partial, f remoteFile) error {
	had, err := p.size()
	if err != nil {
		return err
	}
	err = resume(ctx, a, p, f, had)
	if had > 0 && (errors.Is(err, apiclient.ErrOtherFile) || errors.Is(err, errDamaged)) {
		a.Note("%s was not the beginning of this backup: downloading it from the start", p.Name())
		if err := p.Truncate(0); err != nil {
			return err
		}
		err = resume(ctx, a, p, f, 0)
	}
	switch {
	case errors.Is(err, errDamaged):
		return errors.Join(err, os.Remove(p.Name())) // Nobody can go on with it.
	case ctx.Err() != nil:
		return p.keeps(app.Over(ctx))
	}
	return err
}

// append downloads the bytes after those that a partial file has.
func resume(ctx context.Context, a *app.App, p *partial, f remoteFile, had int64) error {
	if _, err := p.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if had > 0 {
		a.Note("%s of %s are here: going on after them", terminal.Bytes(had), terminal.Bytes(f.Size))
	}
	d, err := openRemote(ctx, a, f, apiclient.Continue(reading{ctx, p}, f.Size, f.SHA256))
	if apiclient.Unanswered(err) {
		return p.keeps(err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // it was read
	meter := newMeter(a, string(f.Name), f.Size, had)
	defer meter.end()
	if _, err := io.Copy(p, io.TeeReader(d, meter)); err != nil {
		return p.keeps(err)
	}
	if d.SHA256() != f.SHA256 {
		return errDamaged
	}
	return nil
}

// reading ends with a context.
type reading struct {
	context.Context
	io.Reader
}

// Read implements io.Reader.
func (r reading) Read(b []byte) (int, error) {
	if err := r.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
