package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/archive/pgbackrest"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
)

// Rebuild says how a server that is lost comes back from its archive, where PostgreSQL does not run yet.
type Rebuild struct {
	// DataDir is the server's folder, which is empty or not there.
	DataDir string
	// At is the moment as of which it comes back; zero: the last that the archive has.
	At time.Time
	// Passphrase is that of the archive.
	Passphrase string
	// BackupDir has the archive where there is no Bucket and no Repository.
	BackupDir string
	// Bucket is the object store that has it; nil: it is in a folder.
	Bucket *s3.Config
	// Archive says where the archive is, and has the programs.
	Archive Archive
	// Tell hears how far it is, a line each.
	Tell func(line string)
}

// Run brings the server back. After an error its folder is as it was; called again, it goes on.
func (c *Rebuild) Run(ctx context.Context) (done archive.Rebuilt, err error) {
	site, err := archive.OpenSite(c.DataDir)
	if err != nil {
		return done, fmt.Errorf("--data-dir: %w", err)
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	engine, err := c.find(ctx, site)
	if err != nil {
		return done, err
	}
	if err := c.fits(ctx, engine, site.Place(c.Passphrase, c.repository())); err != nil {
		return done, err
	}
	r := &archive.Rebuild{
		Site: site, At: c.At, Postgres: c.Archive.Postgres, User: setup.AgentLogin, Maintenance: setup.MaintenanceDatabase,
		Tell: c.Tell, Now: time.Now, Crash: func(point string) { crash.Point(backupPoint(point)) },
	}
	return r.Run(ctx, engine)
}

// checkPrograms refuses programs that are missing, or that are no PostgreSQL as servers have it.
func (c *Rebuild) checkPrograms(ctx context.Context, p archive.Place) error {
	if _, err := floors.Find(ctx, c.Archive.PgBackRest, p.As); err != nil {
		return fmt.Errorf("--pgbackrest: %w", err)
	}
	return c.checkServer(ctx, p, 0)
}

// checkServer refuses a program of the server that does not run what is of a major version.
func (c *Rebuild) checkServer(ctx context.Context, p archive.Place, major int) error {
	v, err := floors.Find(ctx, c.Archive.Postgres, p.As)
	if err == nil {
		err = v.Runs(major)
	}
	if err != nil {
		return fmt.Errorf("--postgres-program: %w", err)
	}
	return nil
}

// fits refuses a program that would not start with what comes back, before that is fetched.
func (c *Rebuild) fits(ctx context.Context, e *pgbackrest.Engine, p archive.Place) error {
	major, err := e.Major(ctx)
	if err != nil {
		return err
	}
	return c.checkServer(ctx, p, major)
}

// repository is the folder of the archive, where it is in one.
func (c *Rebuild) repository() string {
	if c.Bucket != nil {
		return ""
	}
	return cmp.Or(c.Archive.Repository, filepath.Join(c.BackupDir, archiveFolder, repositoryFolder))
}

// find opens the archive. Below the prefix of an object store there may be those of several servers: the passphrase tells which
// is meant.
func (c *Rebuild) find(ctx context.Context, site *archive.Site) (*pgbackrest.Engine, error) {
	repository := c.repository()
	p := site.Place(c.Passphrase, repository)
	if err := c.checkPrograms(ctx, p); err != nil {
		return nil, err
	}
	open := func(repository string) (*pgbackrest.Engine, error) {
		return pgbackrest.New(pgbackrest.Settings{
			Program: c.Archive.PgBackRest, Dir: site.Programs(), As: p.As, Repository: repository, S3: c.Bucket,
			Passphrase: p.Passphrase, Days: 1,
			Postgres: pgbackrest.Postgres{
				DataDir: p.DataDir, Port: 5432, User: setup.AgentLogin, Database: setup.MaintenanceDatabase,
			},
		})
	}
	if c.Bucket == nil {
		if _, err := os.Stat(repository); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--backup-dir: there is no archive: %w", err)
		}
		engine, err := open(repository)
		if err != nil {
			return nil, err
		}
		return engine, opens(ctx, engine, repository)
	}
	all, err := open(archiveFolder)
	if err != nil {
		return nil, err
	}
	where := strings.Trim(c.Bucket.Bucket+"/"+c.Bucket.Prefix, "/") + "/" + archiveFolder
	installations, err := all.Folders(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", where, err)
	case len(installations) == 0:
		return nil, fmt.Errorf("--s3-prefix: there is no archive in %s", where)
	}
	for _, one := range installations {
		engine, err := open(archiveFolder + "/" + one)
		if err == nil {
			err = opens(ctx, engine, where)
		}
		if !errors.Is(err, archive.ErrKey) {
			return engine, err
		}
	}
	return nil, fmt.Errorf("%w: %s has that of the installation %s", archive.ErrKey, where, strings.Join(installations, ", "))
}

// opens returns an archive.ErrKey where the passphrase is not the archive's.
func opens(ctx context.Context, e *pgbackrest.Engine, where string) error {
	if err := e.Opens(ctx); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}
