package backup

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/klauspost/compress/zstd"
	gzip "github.com/klauspost/pgzip"
	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/copyout"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// The compression of a backup file, and of every sidecar: gzip's default level, in blocks of 1 MiB on two threads. This also
// bounds memory.
const (
	gzipBlock   = 1 << 20
	gzipThreads = 2
)

// packer is a writer that compresses.
type packer interface {
	io.WriteCloser
	Reset(to io.Writer)
}

func zipped(to io.Writer) (packer, error) {
	zip := gzip.NewWriter(to)
	return zip, zip.SetConcurrency(gzipBlock, gzipThreads)
}

// packed is for a file that passes: nobody unpacks it but an agent, and somebody waits for it.
func packed(to io.Writer) (packer, error) {
	return zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(copies.PackedWindow),
		zstd.WithEncoderConcurrency(gzipThreads))
}

// dump makes the set of files and commits it. When it fails, nothing of the set is left that could be removed.
func (x *Backups) dump(
	ctx context.Context, c *diskroom.Claim, req Request, tell jobs.Tell,
) (result Result, err error) {
	var made spool
	err = x.from(ctx, c, req, tell, func(from source) (err error) {
		made, err = x.spooled(ctx, from, req, tell)
		result = Result{Manifest: made.manifest, AsOf: from.asOf}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, made.draft.End(context.WithoutCancel(ctx))) }()
	x.Crash("backup.after-partial")
	return result, x.commit(ctx, made.draft, req, tell)
}

// spool is a set that is complete, but not committed.
type spool struct {
	draft    *store.Draft
	manifest backup.StoredManifest
}

// source is the server with what is dumped.
type source struct {
	*sessions.Server
	database string
	logins   []string // those that the platform made for it
	beside   bool     // it is a server beside the live one
	asOf     *time.Time
}

// spooled makes the set of files.
func (x *Backups) spooled(ctx context.Context, from source, req Request, tell jobs.Tell) (made spool, err error) {
	ctx, cancel := jobs.Within(ctx, "the dump", x.Limits.Dump)
	defer cancel()
	run := pgdump.New(x.Tool, from.Server, from.database, req.OperationID)
	err = from.With(from.database, req.OperationID, func(db *sql.DB) error {
		if !from.beside { // where nobody else locks anything
			release, err := x.copies.TakeLocks(ctx, db, req.OperationID, req.Account)
			if err != nil {
				return err
			}
			defer release()
		}
		made, err = x.undisturbed(ctx, dumping{from, db, run}, req, tell)
		return err
	})
	return made, jobs.InTime(ctx, err)
}

// noDatabase returns DATABASE_NOT_FOUND for a failed connection to a database that does not exist.
func noDatabase(err error) error {
	if e := pq.As(err, "3D000"); e != nil {
		return fault.Wrap(err, fault.DatabaseNotFound, "the database does not exist")
	}
	return err
}

// dumping is what is dumped, and by what.
type dumping struct {
	source
	db  *sql.DB
	run *pgdump.Dump
}

// inSnapshot writes all files of a set from one snapshot of the database. When it fails, nothing of them is left.
func (x *Backups) inSnapshot(
	ctx context.Context, d dumping, req Request, try int, tell jobs.Tell,
) (made spool, err error) {
	run := d.run
	owners, err := largeObjectOwners(ctx, d.db)
	if err != nil {
		return made, err
	}
	if err := run.MakeLogin(ctx, owners); err != nil {
		return made, err
	}
	x.Crash("backup.after-login")
	held, err := x.hold(ctx, d, req)
	if err != nil {
		return made, err
	}
	defer held.Close()
	if made.draft, err = x.files(req).Begin(ctx, req.DatabaseID, req.Filename); err != nil {
		return made, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.draft.End(context.WithoutCancel(ctx)))
		}
	}()
	m := backup.Manifest{
		FormatVersion: backup.FormatVersion, DatabaseID: req.DatabaseID, OperationID: req.OperationID, Filename: req.Filename,
		CreatedAt: x.Now().UTC(), Snapshot: &backup.Snapshot{LockedTables: held.Tables, Tries: try},
	}
	err = d.Admin(req.OperationID, func(admin *sql.DB) error {
		return held.While(ctx, admin, func(ctx context.Context) error {
			x.Crash("backup.after-snapshot")
			owners, err := largeObjectOwners(ctx, held.Tx) // who has got the first since the login was made
			if err == nil {
				err = run.MakeLogin(ctx, owners)
			}
			if err != nil {
				return err
			}
			return x.write(ctx, writing{run, held, made.draft, d.logins}, req, &m, tell)
		})
	})
	if err == nil {
		m.WrittenAt = x.Now().UTC()
		made.manifest, err = made.draft.Prepare(m)
	}
	return made, err
}

// writing is what a set is written from, and to.
type writing struct {
	run    *pgdump.Dump
	held   *pgdump.Held
	draft  *store.Draft
	logins []string
}

// write writes the files, and reads the manifest.
func (x *Backups) write(
	ctx context.Context, w writing, req Request, m *backup.Manifest, tell jobs.Tell,
) error {
	held := w.held
	p, err := x.plan(ctx, held.Tx, req, tell)
	if err != nil {
		return err
	}
	data, err := w.draft.Data()
	if err != nil {
		return err
	}
	var file, schema backup.FileDigest
	var rows map[string]int64
	var others map[string]backup.TableDigest
	var sequences map[string]backup.Value
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { file, err = w.data(ctx, data, req, p); return err })
	group.Go(func() (err error) {
		if err = describe(ctx, held.Tx, w.logins, m); err != nil {
			return err
		}
		if sequences, err = content.ExtensionSequences(ctx, held.Tx); err != nil || !req.Passing {
			return err
		}
		return w.show(ctx, data, *m)
	})
	group.Go(func() (err error) { // over one connection: a database has few to spare for the agent
		out := copyout.Over(held.Second.Conn)
		if rows, others, err = content.Count(ctx, out, p.counts.others(p.tables), p.digests != nil); err != nil {
			return err
		}
		out.Release()
		schema, err = w.sidecar(ctx, req)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	m.File, m.Sidecar = file, schema
	maps.Copy(sequences, p.sequences)
	p.counts.into(rows)
	m.Contents.Rows, m.Contents.Sequences = rows, sequences
	p.digests.into(&m.Contents, others)
	return nil
}

// largeObjectOwners are the roles that own large objects of the database, as far as the agent may pass them on.
func largeObjectOwners(ctx context.Context, q pg.Querier) ([]string, error) {
	return pg.Column(ctx, q, `SELECT rolname FROM pg_roles r
		WHERE pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION') AND NOT rolsuper
		AND EXISTS (SELECT FROM pg_largeobject_metadata WHERE lomowner = r.oid) ORDER BY 1`)
}

// plan is what the portable filter needs to know about the source, and what it learns from the dump.
type plan struct {
	settings  map[string]bool
	tables    []content.Table
	meter     *meter
	sequences map[string]backup.Value
	digests   *digests
	counts    *counts // nil: tables are read once more to be counted
}

func (x *Backups) plan(ctx context.Context, tx *sql.Tx, req Request, tell jobs.Tell) (*plan, error) {
	settings, err := content.KnownSettings(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := boundDefinitions(ctx, tx); err != nil {
		return nil, err
	}
	list, err := content.Tables(ctx, tx) // bounds how many sizes there are
	if err != nil {
		return nil, err
	}
	weights, err := content.TableSizes(ctx, tx)
	if err != nil {
		return nil, err
	}
	percent := 99
	if req.Verify {
		percent = copies.DumpShare
	}
	dumped := jobs.Share(tell, backup.Dumping, 0, percent)
	p := &plan{settings: settings, tables: list, meter: newMeter(weights, dumped), sequences: map[string]backup.Value{}}
	switch {
	case req.Followed:
		p.counts = newCounts(list)
	case !x.CountsOnly:
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
			p.counts.begin(name)
		},
		Lines: func(text []byte) {
			p.digests.lines(text)
			p.counts.lines(text)
		},
		LargeObject: p.digests.beginObject,
		Content:     p.digests.content,
		Sequence: func(s dumpsql.Sequence) {
			p.sequences[dumpsql.Canonical(s.Name)] = backup.Value{Last: s.Last, Called: s.Called}
		},
	}
}

// show shows a peer what passes, with what is known of it.
func (w writing) show(ctx context.Context, data *store.File, m backup.Manifest) (err error) {
	if m.Contents.Rows, err = content.Estimates(ctx, w.held.Tx); err != nil {
		return err
	}
	head, err := json.Marshal(m)
	if err == nil {
		w.draft.Show(data, store.Growing{OperationID: m.OperationID, CreatedAt: m.CreatedAt, Head: head})
	}
	return err
}

func (w writing) data(ctx context.Context, file *store.File, req Request, p *plan) (backup.FileDigest, error) {
	pack := zipped
	if req.Passing {
		pack = packed
	}
	return compressed(file, pack, req.MaxBytes, func(dst io.Writer) error {
		consume := func(src io.Reader) error { return p.filter().Copy(dst, src) }
		return w.run.Run(ctx, w.held.First, consume, w.args(req, "--no-owner", "--no-privileges")...)
	})
}

// sidecar writes what the portable file leaves out: the schema with owners, privileges and the roles of policies.
func (w writing) sidecar(ctx context.Context, req Request) (backup.FileDigest, error) {
	file, err := w.draft.Sidecar()
	if err != nil {
		return backup.FileDigest{}, err
	}
	return compressed(file, zipped, 0, func(dst io.Writer) error {
		return w.run.Run(ctx, w.held.Second, func(src io.Reader) error { return copyWithin(dst, src) }, w.args(req, "--schema-only")...)
	})
}

// compressed runs produce with a writer that packs into the file, and makes the file durable. A file that becomes larger than
// most, where that is not 0, is BACKUP_STORAGE_FULL.
func compressed(
	file *store.File, pack func(io.Writer) (packer, error), most int64, produce func(io.Writer) error,
) (backup.FileDigest, error) {
	defer file.Close() //nolint:errcheck // after Finish it does nothing; before it, the file is discarded
	var to io.Writer = file
	if most > 0 {
		to = &bounded{file: file, left: most, most: most}
	}
	zip, err := pack(to)
	if err != nil {
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
