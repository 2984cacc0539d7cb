package agenttest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
)

// Marked demands that a copy's login is nothing but its mark.
func (s *Stack) Marked(t testing.TB, operation string) {
	t.Helper()
	const usable = `SELECT count(*) FROM pg_authid r WHERE r.rolname = $1 AND (
		r.rolcanlogin OR r.rolbypassrls OR r.rolpassword IS NOT NULL
		OR EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid)
		OR EXISTS (SELECT FROM pg_auth_members m WHERE r.oid IN (m.roleid, m.member) AND m.member <> 'pgherd_agent'::regrole))`
	if s.One(t, usable, "restore_"+Compact(operation)) != "0" {
		t.Error("the copy's login can be used, or something depends on it")
	}
}

// Zipped is a gzip member.
func Zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// Dump is a dump as customers send it, with its last line.
func Dump(text string) []byte { return Zipped(text + "\n" + upload.ClosingLine + "\n") }

// Ask asks a question, perhaps with bytes, and returns the answer or why there is none.
func (s *Stack) Ask(t testing.TB, q command.Question, bytes ...byte) (got command.Uploaded, reason command.Reason) {
	t.Helper()
	path, body, err := protocol.WriteQuestion(q)
	check.NoError(t, err)
	if !protocol.HasBody(q) {
		body = bytes
	}
	status, text, err := s.Request(q.Route().Method, path, body)
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

// Upload is one that a test makes.
type Upload struct {
	W    Wanted
	ID   id.UploadID
	Data []byte
}

// Upload is an upload of data for the database.
func (w Wanted) Upload(data []byte) Upload { return Upload{w, id.UploadID(NewUUID()), data} }

// Open announces the upload.
func (u Upload) Open(kept time.Duration) command.OpenUpload {
	return command.OpenUpload{
		DatabaseID: u.W.DatabaseID(), UploadID: u.ID, SizeBytes: int64(len(u.Data)), ExpiresAt: time.Now().Add(kept),
	}
}

// Chunk sends bytes at an offset.
func (u Upload) Chunk(offset int) command.Chunk {
	return command.Chunk{DatabaseID: u.W.DatabaseID(), UploadID: u.ID, Offset: int64(offset)}
}

// Asking asks how much has come.
func (u Upload) Asking() command.AskUpload {
	return command.AskUpload{DatabaseID: u.W.DatabaseID(), UploadID: u.ID}
}

// Drop gives the upload up.
func (u Upload) Drop() command.DropUpload {
	return command.DropUpload{DatabaseID: u.W.DatabaseID(), UploadID: u.ID}
}

// Load loads what was uploaded.
func (u Upload) Load(operation string) protocol.Command {
	return Told(operation, 1, command.Load{DatabaseID: u.W.DatabaseID(), Source: command.Source{
		DatabaseID: u.W.DatabaseID(), Upload: u.ID, SizeBytes: int64(len(u.Data)), SHA256: fmt.Sprintf("%x", sha256.Sum256(u.Data)),
	}})
}

// Sent is an upload that is whole.
func (s *Stack) Sent(t testing.TB, w Wanted, data []byte) Upload {
	t.Helper()
	u := w.Upload(data)
	if _, reason := s.Ask(t, u.Open(time.Hour)); reason != "" {
		t.Fatal("open: ", reason)
	}
	if got, reason := s.Ask(t, u.Chunk(0), data...); reason != "" || got.ReceivedBytes != int64(len(data)) {
		t.Fatal("chunk: ", got, reason)
	}
	return u
}

// UploadsLeft is what the agent has of an upload.
func (s *Stack) UploadsLeft(t testing.TB, u Upload) string {
	t.Helper()
	return s.One(t, `SELECT concat_ws(' ', (SELECT 'row' FROM ledger.reservation WHERE claimant = $1),
		(SELECT 'file' FROM pg_ls_dir($2) f WHERE f LIKE '%' || $1 || '%'))`, string(u.ID), s.Config.BackupDir+"/uploads")
}
