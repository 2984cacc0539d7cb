package artifact

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// verify restores the file, as stored, into an isolated copy, compares the copy with the manifest, and does to it what a restore
// of the database would do before its switch. BACKUP_NOT_VERIFIED says that the backup is at fault, and names statement, object
// and SQLSTATE, or what differs.
func (b *Backuper) verify(ctx context.Context, c *claim, m backup.StoredManifest) error {
	req := asRestored(c.req, m)
	set, err := b.openSet(req)
	if err != nil {
		return err
	}
	defer set.close()
	return b.cfg.with(b.cfg.Maintenance, m.OperationID, func(admin *sql.DB) (err error) {
		copied := b.copyFor(verification, m.OperationID, m.DatabaseID, admin)
		if err := copied.drop(ctx, func(string) {}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.removeCopy(ctx, copied)) }()
		began, err := recovered(ctx, admin)
		if err != nil {
			return err
		}
		if err := copied.create(ctx, m.Contents.Locale, b.Crash); err != nil {
			return err
		}
		limited, cancel := b.limitCopy(ctx, "its verification", set.took)
		defer cancel()
		err = c.copying(limited, copied, func(ctx context.Context) error { return b.tryRestore(ctx, c, copied, req, set) })
		return unlessRecovered(ctx, admin, began, unverifiedInTime(limited, err))
	})
}

// asRestored is the restore of a backup into its own database.
func asRestored(req Request, m backup.StoredManifest) LoadRequest {
	return LoadRequest{
		OperationID: req.OperationID, DatabaseID: req.DatabaseID, Database: req.Database, Owner: req.Owner,
		Source: req.DatabaseID, Filename: req.Filename, ManifestSHA256: m.SHA256, Rows: true,
	}
}

// tryRestore does all that a restore does to its copy. What Request.Try tries needs the login, which is shut afterwards.
func (b *Backuper) tryRestore(ctx context.Context, c *claim, copied *isolated, req LoadRequest, set *fileSet) error {
	if err := b.restoreSet(ctx, copied, set, share(c.progress, StageVerifying, dumpShare, 30)); err != nil {
		return err
	}
	b.Crash("backup.verify.restored")
	tell := share(c.progress, StageVerifying, dumpShare+30, 9)
	if err := b.compare(ctx, copied, set.manifest.Manifest, req.Rows, tell); err != nil {
		return err
	}
	if try := c.req.Try; try != nil {
		if err := copied.session(ctx, func(conn *pgconn.PgConn) error { return try(ctx, conn) }); err != nil {
			return err
		}
	}
	_, err := b.handOver(ctx, copied, req, set, b.Crash)
	return err
}

// removeCopy drops the copy, however long PostgreSQL takes for its files and the checkpoint before: a backup that was found equal
// must not fail for that.
func (b *Backuper) removeCopy(ctx context.Context, copied *isolated) error {
	return b.cfg.cleanUp(ctx, func(ctx context.Context) error { return copied.drop(ctx, b.Crash) })
}

// cleanUp removes something. Once the backup is canceled, that may take CleanupTime; what is left then the next start sweeps.
func (c *Config) cleanUp(ctx context.Context, remove func(context.Context) error) error {
	if err := remove(ctx); ctx.Err() == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.CleanupTime)
	defer cancel()
	return remove(ctx)
}

// consumer reads the text of a file.
type consumer = func(io.Reader) error

func (b *Backuper) restoreBy(ctx context.Context, copied *isolated, m backup.Manifest, read func(consumer) error) error {
	settings, err := knownSettings(ctx, copied.admin)
	if err != nil {
		return err
	}
	conn, err := copied.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the copy is dropped in any case
	r := load.Restorer{Conn: conn, Settings: settings, Extensions: versions(m.Contents.Extensions), Rows: m.Contents.Rows}
	return read(func(text io.Reader) error {
		return r.Run(ctx, dumpsql.NewReader(text, dumpsql.Limits{}))
	})
}

func versions(list []backup.Extension) map[string]string {
	m := make(map[string]string, len(list))
	for _, e := range list {
		m[dumpsql.QuoteName(e.Name)] = e.Version
	}
	return m
}

// readFile has consume read a file's text, and checks that the file is complete and the one that the manifest names.
func readFile(file io.Reader, size int64, m backup.Manifest, tell part, consume consumer) error {
	src := &stored{src: file, sum: sha256.New(), report: func(n int64) { tell(n, size) }}
	text, err := unzip(src)
	if err == nil {
		err = consume(text)
	}
	if err != nil {
		return atFault(err)
	}
	if _, err := io.Copy(io.Discard, src); err != nil {
		return err
	}
	if got := hex.EncodeToString(src.sum.Sum(nil)); got != m.File.SHA256 {
		return notVerified(&damagedError{errors.New("its SHA-256 is not the manifest's")})
	}
	return nil
}

// stored hashes and counts what is read of the stored file.
type stored struct {
	src    io.Reader
	sum    hash.Hash
	n      int64
	report func(n int64)
}

func (s *stored) Read(p []byte) (int, error) {
	n, err := s.src.Read(p)
	s.sum.Write(p[:n])
	s.n += int64(n)
	s.report(s.n)
	return n, err
}

// atFault turns errors that only the dump can have caused into BACKUP_NOT_VERIFIED, and leaves others unchanged.
func atFault(err error) error {
	var statement *load.StatementError
	var syntax *dumpsql.SyntaxError
	var damaged *damagedError
	switch {
	case errors.As(err, &damaged):
		return notVerified(damaged)
	case errors.As(err, &statement):
		return notVerified(statement)
	case errors.As(err, &syntax):
		return notVerified(err)
	default:
		return err
	}
}

func notVerified(why error) error {
	return fault.Wrap(why, fault.BackupNotVerified, "the backup file did not come back equal: %s", why.Error())
}

// compare observes the copy, as the agent and therefore without running any of the customer's code, and holds it against the
// manifest; without rows, all but the contents of its tables and large objects.
func (b *Backuper) compare(ctx context.Context, copied *isolated, m backup.Manifest, rows bool, tell part) error {
	return b.cfg.with(copied.name(), copied.op, func(db *sql.DB) error {
		contents, err := observe(ctx, db)
		if err != nil {
			return err
		}
		if rows {
			err = b.readCopied(ctx, copied, db, m.Contents, &contents, tell)
		} else {
			want := m.Contents
			contents.Rows, contents.Digests, contents.LargeObjectDigest = want.Rows, want.Digests, want.LargeObjectDigest
		}
		if err != nil {
			return err
		}
		if contents.Sequences, err = sequencePositions(ctx, db); err != nil {
			return err
		}
		if found := backup.Compare(m, contents); len(found) > 0 {
			return notVerified(errors.New(backup.Summary(found)))
		}
		return nil
	})
}
