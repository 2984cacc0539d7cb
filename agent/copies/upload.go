package copies

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/agent/uploads"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/upload"
)

const (
	// mostGrowth is how many times its size an upload may unpack to.
	mostGrowth = 200
	// mostStatement bounds one statement of an upload, which is in memory four times, of as many uploads as loadsAtOnce. pg_dump
	// writes long ones only for rows that it was told to write as INSERT.
	mostStatement = 32 << 20
)

// refusedUpload is BACKUP_NOT_VERIFIED for what is wrong with an upload itself.
func refusedUpload(why error) error {
	return fault.Wrap(why, fault.BackupNotVerified, "the upload cannot be restored: %s", why.Error())
}

// ofUpload says of an upload what is otherwise said of a backup that was restored.
func ofUpload(err error) error {
	var known *fault.Error
	if !errors.As(err, &known) || known.Code != fault.BackupNotVerified {
		return err
	}
	if why := errors.Unwrap(known); why != nil {
		return refusedUpload(why)
	}
	return err
}

// checkUploaded returns UPLOAD_NOT_FOUND where there is nothing to load: no file, or one whose room is not kept any more.
func (x *Copies) checkUploaded(ctx context.Context, req Request) error {
	file, _, err := x.Files.OpenUpload(store.Upload{Database: req.DatabaseID, ID: req.Source.Upload})
	if err != nil {
		return err
	}
	ledger, err := x.Room.Ledger()
	if err == nil {
		_, err = uploads.Size(ctx, ledger, req.Source.Upload)
	}
	return errors.Join(err, file.Close())
}

// openUploaded opens an upload that is the announced one, byte by byte. Nothing is appended to it any more.
func (x *Copies) openUploaded(ctx context.Context, req Request) (set *fileSet, err error) {
	set = &fileSet{uploaded: true}
	defer func() {
		if err != nil {
			set.close()
		}
	}()
	file, size, err := x.Files.OpenUpload(store.Upload{Database: req.DatabaseID, ID: req.Source.Upload})
	if err != nil {
		return set, err
	}
	set.data, set.size = local{file}, size
	if set.size != req.Source.SizeBytes {
		return set, refusedUpload(fmt.Errorf("it has %d bytes, and %d were announced", set.size, req.Source.SizeBytes))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, &attended{ctx, set.data}); err != nil {
		return set, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != req.Source.SHA256 {
		return set, refusedUpload(errors.New("its SHA-256 is not the announced one"))
	}
	err = x.Server.Admin(req.OperationID, func(admin *sql.DB) (err error) {
		set.manifest.Contents.Locale, err = content.LocaleOf(ctx, admin, req.Database) // a dump does not say its own
		return err
	})
	return set, err
}

// attended ends the reading of a file when ctx ends.
type attended struct {
	ctx context.Context
	src io.Reader
}

func (a *attended) Read(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.src.Read(p)
}

// growing ends the reading of a text that becomes too long for what it was packed into.
type growing struct {
	src  io.Reader
	left int64
}

var errGrowth = fmt.Errorf("it unpacks to more than %d times its size", mostGrowth)

func (g *growing) Read(p []byte) (int, error) {
	n, err := g.src.Read(p)
	if g.left -= int64(n); g.left < 0 {
		return 0, errGrowth
	}
	return n, err
}

// fillUploaded makes of an empty copy what an upload holds. From when the login is shut, nothing of the customer's runs.
func (x *Copies) fillUploaded(
	ctx context.Context, copied *Isolated, req Request, set *fileSet, tell jobs.Tell,
) (loaded Loaded, err error) {
	if loaded.Notes, err = x.restoreUploaded(ctx, copied, req, set, jobs.Share(tell, StageLoading, 0, 99)); err != nil {
		return loaded, err
	}
	x.Crash("restore.loaded")
	tell(StageGranting, 99, command.Bytes{})
	if err := copied.shut(ctx); err != nil {
		return loaded, err
	}
	x.Crash("restore.shut")
	if err := x.withLocks(ctx, copied, func() error { return x.handUploaded(ctx, copied, req.Owner) }); err != nil {
		return loaded, err
	}
	x.Crash("restore.granted")
	return loaded, x.withinQuota(ctx, copied, req.Source.MaxBytes)
}

// withinQuota returns BACKUP_NOT_VERIFIED for a copy that is larger than its database may be.
func (x *Copies) withinQuota(ctx context.Context, copied *Isolated, quota int64) error {
	size, err := x.Room.SizeOf(ctx, copied.Name())
	if err == nil && quota > 0 && size > quota {
		err = diskroom.TooLarge(size, quota)
	}
	return err
}

// restoreUploaded returns what is to be noted of an upload that is restored.
func (x *Copies) restoreUploaded(
	ctx context.Context, copied *Isolated, req Request, set *fileSet, tell jobs.Part,
) (notes []string, err error) {
	settings, err := content.KnownSettings(ctx, copied.admin)
	if err != nil {
		return nil, err
	}
	judge, err := x.judge(ctx, copied, req.Owner)
	if err != nil {
		return nil, err
	}
	conn, err := copied.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the copy is dropped, or all is committed
	if err := set.data.rewind(); err != nil {
		return nil, err
	}
	packed := &counted{src: &attended{ctx, set.data}, sum: sha256.New(), report: func(n int64) { tell(n, set.size) }}
	r := load.Restorer{Conn: conn, Settings: settings, Refuse: judge.Refuse, Skip: judge.Skip, Ending: &upload.Ending{}}
	err = readUpload(packed, set.size, func(dump io.Reader) error {
		return r.Run(ctx, dumpsql.NewReader(dump, dumpsql.Limits{Statement: mostStatement}))
	})
	switch {
	case err != nil:
		return nil, advised(err, r.Dumped, conn.ParameterStatus("server_version"))
	case conn.TxStatus() != 'I':
		return nil, refusedUpload(errors.New("it ends within a transaction"))
	case hex.EncodeToString(packed.sum.Sum(nil)) != req.Source.SHA256:
		return nil, errors.New("the upload was changed while it was read")
	}
	notes = r.Notes
	if !r.Ending.Whole() {
		notes = append(notes, "the upload does not end with pg_dump's closing line, so that a part may be missing")
	}
	return notes, r.Ending.Check(req.Source.AcceptIncomplete)
}

// readUpload has consume read the SQL text of an upload of that size.
func readUpload(packed io.Reader, size int64, consume consumer) error {
	file := bufio.NewReader(packed)
	begins, err := file.Peek(upload.MostSniffed)
	if wrong := upload.Packed(begins); wrong != nil {
		return refusedUpload(wrong)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	text, err := unzip(file)
	if err != nil {
		return atFault(err)
	}
	dump, err := plainDump(&growing{src: text, left: mostGrowth * size})
	if err == nil {
		err = consume(dump)
	}
	if errors.Is(err, errGrowth) {
		return refusedUpload(errGrowth)
	}
	return atFault(err)
}

// plainDump refuses other formats in words, and leaves a byte order mark out.
func plainDump(text io.Reader) (io.Reader, error) {
	plain := bufio.NewReader(text)
	begins, err := plain.Peek(upload.MostSniffed)
	if wrong := upload.Plain(begins); wrong != nil {
		return nil, refusedUpload(wrong)
	}
	if bytes.HasPrefix(begins, []byte(upload.Mark)) {
		_, _ = plain.Discard(len(upload.Mark)) // it was peeked at
	}
	if err != nil && !errors.Is(err, io.EOF) && len(begins) == 0 {
		return nil, err
	}
	return plain, nil // an error after the first bytes comes when they are read
}

// judge knows the extensions that whoever may create objects in a database can make.
func (x *Copies) judge(ctx context.Context, copied *Isolated, owner string) (f dumpsql.Foreign, err error) {
	const query = `SELECT DISTINCT name FROM pg_available_extension_versions WHERE trusted`
	names, err := pg.Column(ctx, copied.admin, query)
	trusted := map[string]bool{}
	for _, name := range names {
		trusted[dumpsql.QuoteName(name)] = true
	}
	return dumpsql.Foreign{Owner: owner, Extension: func(name string) bool { return trusted[name] }}, err
}

// handUploaded gives everything to the owner. A copy in which anybody else has something is refused: code in the dump can have
// granted it, and a role of another customer could not be removed as long as it has it.
func (x *Copies) handUploaded(ctx context.Context, copied *Isolated, owner string) error {
	conn, err := x.Server.Connect(ctx, copied.Name(), copied.op)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // all is committed, or the copy is dropped
	whole := sidecar.Copy{Database: copied.Name(), Login: copied.Name(), Roles: sidecar.Roles{Owner: owner}}
	if err := whole.TakeOver(ctx, conn); err != nil {
		return unsuited(err)
	}
	const others = `SELECT string_agg(DISTINCT r.rolname, ', ') FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid
		JOIN pg_database d ON d.datname = $1 WHERE s.refclassid = 'pg_authid'::regclass AND r.rolname <> $2
		AND (s.dbid = d.oid OR s.dbid = 0 AND s.classid = 'pg_database'::regclass AND s.objid = d.oid AND r.rolname <> current_user)`
	found, err := pg.One[sql.NullString](ctx, copied.admin, others, copied.Name(), owner)
	if err == nil && found.Valid {
		err = refusedUpload(fmt.Errorf("it gives something to %s; what is restored belongs to the owner alone",
			load.Shorten(found.String, load.MostSaid)))
	}
	return err
}
