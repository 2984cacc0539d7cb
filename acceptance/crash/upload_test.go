package crash_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/upload"
)

// uploading is a database, and a dump of a customer's own that is to replace what it holds.
type uploading struct {
	restorable
	file []byte
	to   wire.Upload
}

// newUploading announces a dump in which the word is "old", with so many rows that do not pack well beside it.
func newUploading(t *testing.T, w *world, rows int) *uploading {
	t.Helper()
	u := &uploading{restorable: restorable{model: database.SingleLogin}}
	u.user = w.newUser(t, 1)
	u.create(t, w)
	must(w.Admin(soon(t), "enroll", "--database", string(u.db.ID), "--route", "restore-upload"))(t)
	u.asOwner(t, w, "UPDATE word SET said = 'new'")
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	write := func(text string) { must(io.WriteString(zip, text))(t) }
	write("CREATE TABLE word (said text);\nINSERT INTO word VALUES ('old');\n")
	write("CREATE TABLE ballast (n numeric);\nCOPY ballast FROM stdin;\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range rows {
		write(fmt.Sprintln(random.Uint64()))
	}
	write("\\.\n" + upload.ClosingLine + "\n")
	noError(t, zip.Close())
	u.file = packed.Bytes()
	u.to = must(u.user.at(w.api).Restores.AnnounceUpload(soon(t), u.db.ID, wire.AnnounceUpload{
		SizeBytes: int64(len(u.file)), ChecksumSHA256: fmt.Sprintf("%x", sha256.Sum256(u.file)),
	}))(t)
	return u
}

// put sends a part of the file, or asks where that is "*".
func (u *uploading) put(t *testing.T, host *stack.Host, part string, body io.Reader, length int64) (*http.Response, error) {
	t.Helper()
	r := must(http.NewRequestWithContext(soon(t), http.MethodPut, host.URL+u.to.UploadURL, body))(t)
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+u.user.Key)
	r.Header.Set("Content-Range", fmt.Sprintf("bytes %s/%d", part, len(u.file)))
	return u.user.http.Do(r)
}

// received asks a host how much has come.
func (u *uploading) received(t *testing.T, host *stack.Host) int {
	t.Helper()
	answer := must(u.put(t, host, "*", http.NoBody, 0))(t)
	noError(t, answer.Body.Close())
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("how much has come: %s", answer.Status)
	}
	last, some := strings.CutPrefix(answer.Header.Get("Range"), "bytes=0-")
	if !some {
		return 0
	}
	return must(strconv.Atoi(last))(t) + 1
}

// An API host is killed while a customer sends a dump through it. What has come by then is on the database server: the customer
// asks another host how much that is, sends the rest there, and has the database restored from all of it.
func TestAPIKilledInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	const rows = 100_000
	u := newUploading(t, w, rows)
	victim := must(w.StartAPI(soon(t), ""))(t)
	size, half := len(u.file), len(u.file)/2
	from, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		answer, err := u.put(t, victim, fmt.Sprintf("0-%d", size-1), from, int64(size))
		if err == nil {
			err = fmt.Errorf("it was answered with %s", answer.Status)
			_ = answer.Body.Close() // the status says enough
		}
		_ = from.CloseWithError(err)
		ended <- err
	}()
	must(to.Write(u.file[:half]))(t)
	eventually(t, "something has come", func() (bool, string) { n := u.received(t, w.api); return n > half/2, strconv.Itoa(n) })
	noError(t, victim.Kill())
	dies(t, victim.Process, "the middle of a chunk")
	noError(t, to.CloseWithError(io.ErrUnexpectedEOF)) // Go's client gives up only when its body does
	t.Log("the sender: ", <-ended)

	_, err := u.complete(t, w.api)
	refused(t, "an upload of which a part is missing", err, fault.BackupConflict)
	come := 0
	eventually(t, "the rest is taken", func() (bool, string) { // as soon as the agent has noticed
		come = u.received(t, w.api)
		answer := must(u.put(t, w.api, fmt.Sprintf("%d-%d", come, size-1), bytes.NewReader(u.file[come:]), int64(size-come)))(t)
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusNoContent, answer.Status
	})
	if come == 0 || come > half {
		t.Errorf("%d bytes of %d had come", come, half)
	}
	done := must(u.complete(t, w.api))(t)
	eventually(t, "the restore ends", func() (bool, string) {
		done = u.operation(t, w.api, done.ID)
		return done.Status.Final(), done.Stage
	})
	if done.Status != operation.Succeeded {
		t.Fatalf("%+v, %+v", done, done.Error)
	}
	u.says(t, w, "old")
	u.holds(t, w, rows)
	u.isGone(t, w)
	w.settled(t)
}

func (u *uploading) complete(t *testing.T, host *stack.Host) (wire.Operation, error) {
	t.Helper()
	body := wire.CompleteUpload{UploadID: u.to.UploadID, ConfirmDisconnect: true}
	got, err := u.user.at(host).Restores.CompleteUpload(soon(t), u.db.ID, body)
	return got.Operation, err
}

// holds demands that all rows beside the word are there.
func (u *uploading) holds(t *testing.T, w *world, rows int) {
	t.Helper()
	var n int
	noError(t, w.customer(t, u.db.ConnectionString).QueryRowContext(soon(t), "SELECT count(*) FROM ballast").Scan(&n))
	if n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
}

// isGone waits until nobody has the upload any more. That its file is gone too is for settled to see.
func (u *uploading) isGone(t *testing.T, w *world) {
	t.Helper()
	eventually(t, "the upload is removed", func() (bool, string) {
		var records int
		err := w.meta.QueryRowContext(soon(t), "SELECT count(*) FROM uploads").Scan(&records)
		return err == nil && records == 0, fmt.Sprint(records, " ", err)
	})
	if _, err := u.complete(t, w.api); codeOf(err) != fault.UploadNotFound {
		t.Errorf("completed once more: %v", err)
	}
}
