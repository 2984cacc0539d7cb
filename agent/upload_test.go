package agent_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// ask asks a question, perhaps with bytes, and returns the answer or why there is none.
func (s *stack) ask(t testing.TB, q command.Question, bytes ...byte) (got command.Uploaded, reason command.Reason) {
	t.Helper()
	path, body, err := protocol.WriteQuestion(q)
	check.NoError(t, err)
	if !protocol.HasBody(q) {
		body = bytes
	}
	status, text, err := s.request(q.Route().Method, path, body)
	check.NoError(t, err)
	if status < http.StatusBadRequest {
		if len(text) > 0 {
			check.NoError(t, json.Unmarshal(text, &got))
		}
		return got, ""
	}
	var no command.Refusal
	check.NoError(t, json.Unmarshal(text, &no))
	return got, no.Reason
}

// upload is one that a test makes.
type upload struct {
	w    wanted
	id   id.UploadID
	data []byte
}

func (w wanted) upload(data []byte) upload { return upload{w, id.UploadID(newUUID()), data} }

func (u upload) open(kept time.Duration) command.OpenUpload {
	return command.OpenUpload{
		DatabaseID: u.w.databaseID(), UploadID: u.id, SizeBytes: int64(len(u.data)), ExpiresAt: time.Now().Add(kept),
	}
}

func (u upload) chunk(offset int) command.Chunk {
	return command.Chunk{DatabaseID: u.w.databaseID(), UploadID: u.id, Offset: int64(offset)}
}

func (u upload) asking() command.AskUpload {
	return command.AskUpload{DatabaseID: u.w.databaseID(), UploadID: u.id}
}

func (u upload) drop() command.DropUpload {
	return command.DropUpload{DatabaseID: u.w.databaseID(), UploadID: u.id}
}

// load loads what was uploaded.
func (u upload) load(operation string) protocol.Command {
	return told(operation, 1, command.Load{DatabaseID: u.w.databaseID(), Source: command.Source{
		DatabaseID: u.w.databaseID(), Upload: u.id, SizeBytes: int64(len(u.data)), SHA256: fmt.Sprintf("%x", sha256.Sum256(u.data)),
	}})
}

// sent is an upload that is whole.
func (s *stack) sent(t testing.TB, w wanted, data []byte) upload {
	t.Helper()
	u := w.upload(data)
	if _, reason := s.ask(t, u.open(time.Hour)); reason != "" {
		t.Fatal("open: ", reason)
	}
	if got, reason := s.ask(t, u.chunk(0), data...); reason != "" || got.ReceivedBytes != int64(len(data)) {
		t.Fatal("chunk: ", got, reason)
	}
	return u
}

// What pg_dump makes of a customer's own database, wherever that is, becomes the database: with every owner its owner.
func TestRestoreOfAnUpload(t *testing.T) {
	s := realStack(t)
	w, from := s.made(t, database.SingleLogin), s.made(t, database.SingleLogin)
	check.Must(s.owner(t, from).Exec(`CREATE SCHEMA "a b"; CREATE TABLE "a b".things (id serial PRIMARY KEY, name text);
		INSERT INTO "a b".things (name) SELECT 'thing; \. ' || n FROM generate_series(1, 500) n; CREATE EXTENSION pg_trgm;
		CREATE MATERIALIZED VIEW numbers AS SELECT count(*) FROM "a b".things; SELECT lo_from_bytea(4711, 'large');
		ALTER TABLE "a b".things ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON "a b".things USING (id > 1);
		CREATE FUNCTION f(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN n > 1 THEN 2 END; END;
		COMMENT ON SCHEMA "a b" IS 'a; b'; CREATE PUBLICATION p FOR TABLE "a b".things`))(t)
	for _, mode := range [][]string{{}, {"--inserts", "--clean", "--if-exists"}} {
		arguments := append(mode, "--no-owner", "--no-privileges", s.pg.URL(from.name))
		dump, err := exec.Command(s.config.PgDump, arguments...).Output()
		check.NoError(t, err)
		u := s.sent(t, w, zipped(string(dump)))
		operation := newUUID()
		if report := s.loaded(t, u.load(operation)); report.State != command.LoadReady {
			t.Fatalf("%s: %+v", mode, report)
		}
		s.done(t, w.switching(operation))
		s.discarded(t, w, operation)
		s.ask(t, u.drop())
		want := strings.ReplaceAll(s.dumped(t, from), from.name, w.name)
		if got := s.dumped(t, w); got != want {
			t.Errorf("%s: %s\nbut wanted %s", mode, got, want)
		}
		s.getsIn(t, "afterwards", w.present(database.OwnerLogin))
	}
}

// uploadsLeft is what the agent has of an upload.
func (s *stack) uploadsLeft(t testing.TB, u upload) string {
	t.Helper()
	return s.one(t, `SELECT concat_ws(' ', (SELECT 'row' FROM ledger.reservation WHERE operation_id = $1),
		(SELECT 'file' FROM pg_ls_dir($2) f WHERE f LIKE '%' || $1 || '%'))`, string(u.id), s.config.BackupDir+"/uploads")
}
