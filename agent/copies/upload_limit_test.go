package copies_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/upload"
)

// uploaded is a request to load a dump that was uploaded.
func (w *world) uploaded(dump string) copies.Request {
	w.T.Helper()
	return w.uploadedAs(backuptest.Packed(dump + "\n" + core.ClosingLine + "\n"))
}

// uploadedAs is the same with a file.
func (w *world) uploadedAs(file []byte) copies.Request {
	w.T.Helper()
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	upload := id.FromBytes[id.UploadID](random)
	size, sum := int64(len(file)), fmt.Sprintf("%x", sha256.Sum256(file))
	opened := command.OpenUpload{
		DatabaseID: backuptest.DatabaseID, UploadID: upload, SizeBytes: size, ExpiresAt: time.Now().Add(time.Hour),
	}
	check.Must(w.Agent.Uploads.Open(w.T.Context(), opened))(w.T)
	chunk := command.Chunk{DatabaseID: backuptest.DatabaseID, UploadID: upload}
	check.Must(w.Agent.Uploads.Receive(w.T.Context(), chunk, size, io.NopCloser(bytes.NewReader(file))))(w.T)
	return copies.Request{
		OperationID: backuptest.OperationID, DatabaseID: backuptest.DatabaseID, Database: w.Name, Owner: "shop",
		Source: command.Source{Upload: upload, SizeBytes: size, SHA256: sum},
	}
}

// What an upload holds may neither run for ever nor fill the disk, whether it is code or only much.
func TestUploadsThatNeverEndAreEnded(t *testing.T) {
	var small strings.Builder
	small.WriteString("CREATE TABLE public.t (n int);\n")
	for n := range 400_000 {
		fmt.Fprintf(&small, "INSERT INTO public.t VALUES (%d);\n", n*2_654_435_761%1_000_000_007)
	}
	code := func(body string) string {
		return `CREATE TABLE public.junk (v text); ALTER TABLE public.junk ALTER COLUMN v SET STORAGE plain;
			CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN ` + body + ` RETURN true; END $$;
			CREATE TABLE public.t (n int CHECK (public.trap()));` + "\nINSERT INTO public.t VALUES (1);"
	}
	const again = `EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;`
	for what, c := range map[string]struct {
		dump string
		time time.Duration
		said string
	}{
		"a loop that catches its end": {
			code("LOOP BEGIN PERFORM pg_sleep(600); " + again), 2 * time.Second,
			"the restore took longer than 2s; it was ended in statement 5 on line",
		},
		"small statements": {small.String(), 2 * time.Second, "the restore took longer than 2s; it was ended in statement"},
		"rows": {
			code("LOOP BEGIN INSERT INTO public.junk SELECT repeat(md5(n::text), 30) FROM generate_series(1, 10000) n; " + again),
			time.Minute, "its copy takes ",
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.Cramped(1<<40, func(config *backuptest.Config) { config.UploadTime = c.time })
			req := w.uploaded(c.dump)
			began := time.Now()
			_, err := w.Agent.Copies.Load(t.Context(), req, backuptest.Unseen)
			if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "the upload cannot be restored: "+c.said) {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			w.LeavesNothing()
		})
	}
}

// A copy is not made larger than its database may be, whether that shows on the way or at its end.
func TestAnUploadBeyondTheQuota(t *testing.T) {
	const rows = `CREATE TABLE public.t (v text); ALTER TABLE public.t ALTER COLUMN v SET STORAGE plain;
		CREATE FUNCTION public.more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF pg_trigger_depth() = 1 THEN
			FOR i IN 1..%d LOOP
				INSERT INTO public.t SELECT repeat(md5(n::text), 30) FROM generate_series(1, 10000) n;
				PERFORM pg_sleep(CASE WHEN i > 3 THEN 0.1 ELSE 0 END);
			END LOOP; END IF; RETURN NULL; END $$;
		CREATE TRIGGER more AFTER INSERT ON public.t FOR EACH STATEMENT EXECUTE FUNCTION public.more();
		INSERT INTO public.t VALUES ('');`
	for what, c := range map[string]struct {
		loops int
		quota int64
		said  string
	}{
		"on the way":    {100_000, 20 << 20, "and the database may have 20 MB"},
		"at its end":    {3, 20 << 20, "and the database may have 20 MB"},
		"just below it": {3, 100 << 20, ""},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.Cramped(1<<40, func(config *backuptest.Config) { config.UploadTime = time.Minute })
			req := w.uploaded(fmt.Sprintf(rows, c.loops))
			req.Source.MaxBytes = c.quota
			_, err := w.Agent.Copies.Load(t.Context(), req, backuptest.Unseen)
			if c.said == "" {
				if err = errors.Join(err, w.Agent.Copies.Discard(t.Context(), backuptest.OperationID)); err != nil {
					t.Error(err)
				}
			} else if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), c.said) {
				t.Errorf("%v", err)
			}
			w.LeavesNothing()
		})
	}
}

// An upload, and the code in it, can say what they like, as an error or on the way. The agent tells only so much of it.
func TestWhatAnUploadSays(t *testing.T) {
	code := func(raise string) string {
		return `CREATE FUNCTION public.say() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE ` + raise + `; RETURN true; END $$;
			CREATE TABLE public.t (n int CHECK (public.say()));` + "\nINSERT INTO public.t VALUES (1);"
	}
	random := make([]byte, 300_000)
	_, _ = rand.Read(random) // never fails
	for what, c := range map[string]struct{ dump, said string }{
		"a long error":        {code(`EXCEPTION '%', repeat('long ', 100000)`), "failed: long long"},
		"a far too long one":  {code(`EXCEPTION '%', repeat('x', 3000000)`), "PostgreSQL answered with 30"},
		"on the way":          {code(`NOTICE '%', repeat('x', 3000000)`), "PostgreSQL answered with 30"},
		"what it is about":    {code(`EXCEPTION 'm' USING TABLE = repeat('x', 100000)`), "failed: m"},
		"that a disk is full": {code(`EXCEPTION 'm' USING ERRCODE = '53100'`), "failed: m (SQLSTATE 53100)"},
		"an internal error":   {code(`EXCEPTION 'm' USING ERRCODE = 'XX000'`), "failed: m (SQLSTATE XX000)"},
		"a name in the dump":  {fmt.Sprintf("CREATE EXTENSION \"%x\";", random), "the server has no trusted extension"},
		"no statement at all": {fmt.Sprintf("%x;", random), "failed: "},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.Agent.Copies.Load(t.Context(), w.uploaded(c.dump), backuptest.Unseen)
			var known *fault.Error
			if !errors.As(err, &known) || known.Code != fault.BackupNotVerified || !strings.Contains(known.Message, c.said) {
				t.Errorf("%.500v", err)
			}
			if said := len(err.Error()); said > 10_000 {
				t.Errorf("%d bytes are told", said)
			}
			w.LeavesNothing()
		})
	}
}
