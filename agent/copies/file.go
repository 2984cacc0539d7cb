package copies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/backup"
)

// consumer reads the text of a file.
type consumer = func(io.Reader) error

// restoreBy restores a file. It returns what was counted of the manifest's rows meanwhile.
func (x *Copies) restoreBy(
	ctx context.Context, copied *Isolated, m backup.Manifest, read func(consumer) error,
) (rows map[string]int64, err error) {
	settings, err := content.KnownSettings(ctx, copied.admin)
	if err != nil {
		return nil, err
	}
	conn, err := copied.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the copy is dropped in any case
	r := load.Restorer{
		Conn: conn, Settings: settings, Extensions: versions(m.Contents.Extensions), Rows: m.Contents.Rows, Copied: map[string]int64{},
	}
	return r.Copied, read(func(text io.Reader) error {
		if err := r.Run(ctx, dumpsql.NewReader(text, dumpsql.Limits{})); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, flush).ReadAll()
		return err
	})
}

// flush has the statistics say all that was written: content.Read relies on what was counted only where nothing else was.
const flush = `SELECT pg_catalog.pg_stat_force_next_flush()`

func versions(list []backup.Extension) map[string]string {
	m := make(map[string]string, len(list))
	for _, e := range list {
		m[dumpsql.QuoteName(e.Name)] = e.Version
	}
	return m
}

// readFile has consume read the text of the data, to its end. It returns the SHA-256 of the data, in lower-case hex. How far it
// is, is told where the size is known.
func (s *fileSet) readFile(tell jobs.Part, consume consumer) (sum string, err error) {
	src := &counted{src: s.data, sum: sha256.New(), report: func(n int64) {
		if s.size > 0 {
			tell(n, s.size)
		}
	}}
	if s.passing {
		err = unpack(src, consume)
	} else {
		var text io.Reader
		if text, err = unzip(src); err == nil {
			err = consume(text)
		}
	}
	if err != nil {
		return "", atFault(err)
	}
	if _, err := io.Copy(io.Discard, src); err != nil {
		return "", damagedSet(err)
	}
	return hex.EncodeToString(src.sum.Sum(nil)), nil
}

// isFile refuses a file that is not the one of the manifest.
func (s *fileSet) isFile(sum string) error {
	if sum != s.manifest.File.SHA256 {
		return backup.NotVerified(&damagedError{errors.New("its SHA-256 is not the manifest's")})
	}
	return nil
}

// counted hashes and counts what is read of the stored file.
type counted struct {
	src    io.Reader
	sum    hash.Hash
	n      int64
	report func(n int64)
	err    error // other than the end
}

func (s *counted) Read(p []byte) (int, error) {
	n, err := s.src.Read(p)
	s.sum.Write(p[:n])
	s.n += int64(n)
	s.report(s.n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// atFault turns errors that only the dump can have caused into BACKUP_NOT_VERIFIED, and leaves others unchanged.
func atFault(err error) error {
	var statement *load.StatementError
	var syntax *dumpsql.SyntaxError
	var damaged *damagedError
	switch {
	case errors.As(err, &damaged):
		return backup.NotVerified(damaged)
	case errors.As(err, &statement):
		return backup.NotVerified(statement)
	case errors.As(err, &syntax):
		return backup.NotVerified(err)
	default:
		return err
	}
}

// damagedError is what the reader of the stored file finds wrong with it. No other error says that the file is damaged:
// PostgreSQL's connection breaks off with io.ErrUnexpectedEOF as a file does that was cut off.
type damagedError struct{ err error }

func (e *damagedError) Error() string { return fmt.Sprintf("the file is damaged: %v", e.err) }

// PackedWindow is how far what is packed of a file that passes refers back, in bytes of its text.
const PackedWindow = 4 << 20

// unpack has consume read the text of a file that passes.
func unpack(src *counted, consume consumer) error {
	pack, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(PackedWindow))
	if err != nil {
		return err
	}
	defer pack.Close()
	return consume(&unpacked{pack, src})
}

type unpacked struct {
	pack *zstd.Decoder
	src  *counted
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.pack.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case u.src.err != nil:
		err = damage(u.src.err)
	default:
		err = &damagedError{err}
	}
	return n, err
}

// unzipped is the text of a stored file.
type unzipped struct{ zip *gzip.Reader }

func unzip(file io.Reader) (*unzipped, error) {
	zip, err := gzip.NewReader(file)
	if errors.Is(err, io.EOF) { // not even a header
		err = io.ErrUnexpectedEOF
	}
	return &unzipped{zip}, damage(err)
}

func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.zip.Read(p)
	return n, damage(err)
}

// damage marks an error of the unzipping. Others stay as they are, as of the disk, or of who does not answer any more.
func damage(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case jobs.IsAway(err):
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, sealed.ErrDamaged),
		errors.As(err, &corrupt):
		return &damagedError{err}
	}
	return err
}
