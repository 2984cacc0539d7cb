package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/pgzip"
	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// The compression of a backup file: gzip's default level, in blocks of 1 MiB on two threads. This also bounds memory.
const (
	gzipLevel   = 6
	gzipBlock   = 1 << 20
	gzipThreads = 2
)

// dump makes the set of files and commits it. When it fails, nothing of the set is left.
func (b *Backuper) dump(
	ctx context.Context, req Request, progress Progress,
) (manifest backup.StoredManifest, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, b.store.Discard(req.DatabaseID, req.Filename))
		}
	}()
	ctx, cancel := b.limitDump(ctx)
	defer cancel()
	err = b.cfg.with(req.Database, req.OperationID, func(db *sql.DB) error {
		manifest, err = b.inSnapshot(ctx, db, req, progress)
		return err
	})
	if err != nil {
		return backup.StoredManifest{}, b.cfg.explainedDump(ctx, err)
	}
	b.Crash("backup.after-partial")
	err = b.store.Commit(req.DatabaseID, req.Filename, func(step string) { b.Crash("backup.after-" + step + "-rename") })
	if err == nil {
		b.Crash("backup.after-commit")
	}
	return manifest, err
}

// noDatabase returns DATABASE_NOT_FOUND for a failed connection to a database that does not exist.
func noDatabase(err error) error {
	if e := pq.As(err, "3D000"); e != nil {
		return fault.Wrap(err, fault.DatabaseNotFound, "the database does not exist")
	}
	return err
}

// inSnapshot writes all files of a set from one snapshot of the database.
func (b *Backuper) inSnapshot(
	ctx context.Context, db *sql.DB, req Request, progress Progress,
) (stored backup.StoredManifest, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return stored, fmt.Errorf("begin snapshot: %w", err)
	}
	defer tx.Rollback()
	login := &dumpLogin{cfg: &b.cfg, op: req.OperationID}
	run := pgDump{cfg: &b.cfg, database: req.Database, op: req.OperationID, login: login}
	// A customer who keeps a table locked can delay a backup only as long as pg_dump waits.
	if _, err := tx.ExecContext(ctx, `SELECT set_config('lock_timeout', $1, true)`, b.cfg.lockWait()); err != nil {
		return stored, fmt.Errorf("limit the wait for locks: %w", err)
	}
	if err := tx.QueryRowContext(ctx, `SELECT pg_export_snapshot()`).Scan(&run.snapshot); err != nil {
		return stored, fmt.Errorf("export snapshot: %w", err)
	}
	b.Crash("backup.after-snapshot")
	owners, err := largeObjectOwners(ctx, tx)
	if err != nil {
		return stored, err
	}
	defer func() { err = errors.Join(err, login.drop(ctx)) }()
	if err := login.create(ctx, req.Database, owners); err != nil {
		return stored, err
	}
	b.Crash("backup.after-login")
	p, err := b.plan(ctx, tx, req, progress)
	if err != nil {
		return stored, err
	}
	m := backup.Manifest{
		FormatVersion: backup.FormatVersion, DatabaseID: req.DatabaseID, OperationID: req.OperationID, Filename: req.Filename,
		CreatedAt: b.cfg.Now().UTC(),
	}
	var counts map[string]int64
	group, working := errgroup.WithContext(ctx)
	group.Go(func() (err error) { m.File, err = b.writeData(working, run, req, p); return err })
	group.Go(func() error { return describe(working, tx, req.Logins, &m) })
	group.Go(func() (err error) { // in turn: a database has few connections to spare for the agent
		if m.Sidecar, err = b.writeSidecar(working, run, req); err != nil {
			return err
		}
		counts, err = run.count(working, p.tables)
		return err
	})
	if err := group.Wait(); err != nil {
		return stored, err
	}
	m.Contents.Sequences, m.Contents.Rows = p.sequences, counts
	p.digests.into(&m.Contents)
	return b.store.Prepare(m)
}

// plan is what the portable filter needs to know about the source, and what it learns from the dump.
type plan struct {
	settings  map[string]bool
	tables    []relation
	meter     *meter
	sequences map[string]backup.Value
	digests   *digests
}

func (b *Backuper) plan(ctx context.Context, tx *sql.Tx, req Request, progress Progress) (*plan, error) {
	settings, err := knownSettings(ctx, tx)
	if err != nil {
		return nil, err
	}
	weights, err := tableSizes(ctx, tx)
	if err != nil {
		return nil, err
	}
	list, err := tables(ctx, tx)
	if err != nil {
		return nil, err
	}
	percent := 99
	if req.Verify {
		percent = dumpShare
	}
	tell := share(progress, StageDumping, 0, percent)
	p := &plan{settings: settings, tables: list, meter: newMeter(weights, tell), sequences: map[string]backup.Value{}}
	if !b.cfg.CountsOnly {
		p.digests = newDigests(list)
	}
	return p, nil
}

// filter makes the dump portable. Sequences are taken from the dump itself: they follow no snapshot.
func (p *plan) filter() dumpsql.Portable {
	return dumpsql.Portable{
		Known: func(setting string) bool { return p.settings[setting] },
		Data:  p.meter.add,
		Table: func(name string, columns []string) {
			p.meter.begin(name)
			p.digests.begin(name, columns)
		},
		Lines:       p.digests.lines,
		LargeObject: p.digests.beginObject,
		Content:     p.digests.content,
		Sequence: func(s dumpsql.Sequence) {
			p.sequences[dumpsql.Canonical(s.Name)] = backup.Value{Last: s.Last, Called: s.Called}
		},
	}
}

func (b *Backuper) writeData(ctx context.Context, run pgDump, req Request, p *plan) (backup.FileDigest, error) {
	file, err := b.store.Create(req.DatabaseID, req.Filename)
	if err != nil {
		return backup.FileDigest{}, err
	}
	return compressed(file, req.MaxBytes, func(dst io.Writer) error {
		consume := func(src io.Reader) error { return p.filter().Copy(dst, src) }
		return run.run(ctx, consume, "--no-owner", "--no-privileges")
	})
}

// writeSidecar writes what the portable file leaves out: the schema with owners, privileges and the roles of policies.
func (b *Backuper) writeSidecar(ctx context.Context, run pgDump, req Request) (backup.FileDigest, error) {
	file, err := b.store.CreateSidecar(req.DatabaseID, req.Filename)
	if err != nil {
		return backup.FileDigest{}, err
	}
	return compressed(file, 0, func(dst io.Writer) error {
		consume := func(src io.Reader) error { _, err := io.Copy(dst, src); return err }
		return run.run(ctx, consume, "--schema-only")
	})
}

// compressed runs produce with a gzip writer to the file, and makes the file durable. A file that becomes larger than most, where
// that is not 0, is BACKUP_STORAGE_FULL.
func compressed(file *store.File, most int64, produce func(io.Writer) error) (backup.FileDigest, error) {
	defer file.Close() //nolint:errcheck // after Finish it does nothing; before it, the file is discarded
	var to io.Writer = file
	if most > 0 {
		to = &bounded{file: file, left: most, most: most}
	}
	zip, err := pgzip.NewWriterLevel(to, gzipLevel)
	if err != nil {
		return backup.FileDigest{}, err
	}
	if err := zip.SetConcurrency(gzipBlock, gzipThreads); err != nil {
		return backup.FileDigest{}, err
	}
	err = produce(zip)
	if closing := zip.Close(); err == nil {
		err = closing
	}
	if err != nil {
		zip.Reset(io.Discard) // Close ends the writer's goroutine only where it succeeds
		return backup.FileDigest{}, err
	}
	return file.Finish()
}

// bounded refuses what goes beyond a number of bytes.
type bounded struct {
	file       io.Writer
	left, most int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, backup.TooLarge(b.most)
	}
	return b.file.Write(p)
}
