package agent

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

var uploadCases = map[string]func(t *testing.T, s Stand){
	"upload comes in chunks":            uploadInChunks,
	"upload whose chunk breaks off":     uploadBroken,
	"upload is dropped, or never came":  uploadDropped,
	"upload takes the database's place": uploadRestored,
	"upload is not what was announced":  uploadOther,
	"upload that may be a part only":    uploadPart,
}

// uploading is a database to which a dump of one table, "before", is uploaded.
type uploading struct {
	*restorable
	upload id.UploadID
	data   []byte
}

func uploadingOf(t *testing.T, s Stand) *uploading {
	t.Helper()
	return uploadingTable(t, s, upload.ClosingLine+"\n")
}

// uploadingTable uploads a table, and what follows it in the file.
func uploadingTable(t *testing.T, s Stand, tail string) *uploading {
	t.Helper()
	g := admitted(t, s)
	did(t, s.Server.Load(g.spec.Name, "CREATE TABLE before (n int);\nCREATE TABLE after (n int);\n"), "a table")
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	must(io.WriteString(zip, "CREATE TABLE before (n int);\n"+tail))(t)
	noError(t, zip.Close())
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	u := &uploading{upload: id.FromBytes[id.UploadID](random), data: packed.Bytes()}
	sum := sha256.Sum256(u.data)
	u.restorable = &restorable{stage: g, fence: newFence(), load: command.Load{
		DatabaseID: g.spec.DatabaseID, Source: command.Source{
			DatabaseID: g.spec.DatabaseID, Upload: u.upload, SizeBytes: int64(len(u.data)), SHA256: hex.EncodeToString(sum[:]),
		},
	}}
	return u
}

func (u *uploading) open(kept time.Duration) command.OpenUpload {
	return command.OpenUpload{
		DatabaseID: u.spec.DatabaseID, UploadID: u.upload, SizeBytes: int64(len(u.data)), ExpiresAt: time.Now().Add(kept),
	}
}

// opened announces the upload.
func (u *uploading) opened(t *testing.T) *uploading {
	t.Helper()
	if got := must(ports.Ask(bounded(t), u.Agent, u.open(time.Hour)))(t); got.ReceivedBytes != 0 {
		t.Fatalf("%+v", got)
	}
	return u
}

// send sends the bytes from one offset to another, as a chunk at an offset.
func (u *uploading) send(t *testing.T, at int64, bytesOf []byte) (command.Uploaded, error) {
	t.Helper()
	q := command.Chunk{DatabaseID: u.spec.DatabaseID, UploadID: u.upload, Offset: at}
	return ports.Send(bounded(t), u.Agent, q, int64(len(bytesOf)), bytes.NewReader(bytesOf))
}

// whole is an upload of which everything has come.
func (u *uploading) whole(t *testing.T) *uploading {
	t.Helper()
	if got := must(u.opened(t).send(t, 0, u.data))(t); got.ReceivedBytes != int64(len(u.data)) {
		t.Fatalf("%+v", got)
	}
	return u
}

// wantReceived checks how far the upload is.
func (u *uploading) wantReceived(t *testing.T, want int64) {
	t.Helper()
	q := command.AskUpload{DatabaseID: u.spec.DatabaseID, UploadID: u.upload}
	if got := must(ports.Ask(bounded(t), u.Agent, q))(t); got.ReceivedBytes != want {
		t.Errorf("%d bytes are received, want %d", got.ReceivedBytes, want)
	}
}

func (u *uploading) drop(t *testing.T) {
	t.Helper()
	must(ports.Ask(bounded(t), u.Agent, command.DropUpload{DatabaseID: u.spec.DatabaseID, UploadID: u.upload}))(t)
}

func (u *uploading) wantGone(t *testing.T) {
	t.Helper()
	wantReason(t, refusal(ports.Ask(bounded(t), u.Agent, command.AskUpload{DatabaseID: u.spec.DatabaseID, UploadID: u.upload})),
		command.ReasonNotFound)
	wantReason(t, refusal(u.send(t, 0, u.data)), command.ReasonNotFound)
}

// A chunk is taken at the end of what is there, and never beyond what was announced.
func uploadInChunks(t *testing.T, s Stand) {
	u := uploadingOf(t, s).opened(t)
	u.wantReceived(t, 0)
	if got := must(u.send(t, 0, u.data[:7]))(t); got.ReceivedBytes != 7 {
		t.Errorf("%+v", got)
	}
	for _, at := range []int64{0, 6, 8} {
		wantConflict(t, refusal(u.send(t, at, u.data[:1])))
	}
	wantReason(t, refusal(u.send(t, 7, u.data)), command.ReasonInvalid)
	wantReason(t, refusal(u.send(t, 7, nil)), command.ReasonInvalid)
	if got := must(ports.Ask(bounded(t), u.Agent, u.open(2*time.Hour)))(t); got.ReceivedBytes != 7 {
		t.Errorf("%+v", got)
	}
	elsewhere := command.Chunk{DatabaseID: newID[id.DatabaseID](), UploadID: u.upload, Offset: 7}
	_, err := ports.Send(bounded(t), u.Agent, elsewhere, 1, bytes.NewReader(u.data[7:8]))
	wantReason(t, err, command.ReasonNotFound)
	other := u.open(time.Hour)
	other.SizeBytes++
	wantConflict(t, refusal(ports.Ask(bounded(t), u.Agent, other)))
	u.wantReceived(t, 7)
	must(u.send(t, 7, u.data[7:]))(t)
	u.wantReceived(t, int64(len(u.data)))
}

// wantConflict is wantReason for a conflict that is not about generations.
func wantConflict(t *testing.T, err error) {
	t.Helper()
	var no *command.Refusal
	if !errors.As(err, &no) || no.Reason != command.ReasonConflict {
		t.Errorf("got %v, want a conflict", err)
	}
}

// What came of a chunk that breaks off stays.
func uploadBroken(t *testing.T, s Stand) {
	u := uploadingOf(t, s).opened(t)
	broken := errors.New("the customer is gone")
	q := command.Chunk{DatabaseID: u.spec.DatabaseID, UploadID: u.upload}
	body := io.MultiReader(bytes.NewReader(u.data[:5]), iotest.ErrReader(broken))
	if _, err := ports.Send(bounded(t), u.Agent, q, int64(len(u.data)), body); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	var received int64
	eventually(t, func() bool { // the server may notice later, and then has what it has got
		got, err := ports.Ask(bounded(t), u.Agent, command.AskUpload{DatabaseID: u.spec.DatabaseID, UploadID: u.upload})
		if err != nil || got.ReceivedBytes > 5 {
			t.Fatalf("%+v %v", got, err)
		}
		received = got.ReceivedBytes
		_, err = u.send(t, received, u.data[received:])
		return err == nil
	}, "the upload does not go on")
	u.wantReceived(t, int64(len(u.data)))
}

func uploadDropped(t *testing.T, s Stand) {
	for _, u := range []*uploading{uploadingOf(t, s), uploadingOf(t, s).whole(t)} {
		u.drop(t)
		u.drop(t)
		u.wantGone(t)
		s.refuses(t, u.fence, u.load, command.ReasonNotFound)
	}
}

func uploadRestored(t *testing.T, s Stand) {
	u := uploadingOf(t, s).whole(t)
	databases := s.Server.Databases()
	u.ready(t)
	u.wantRestored(t, false)
	must(ports.Do(bounded(t), s.Agent, u.fence, u.switching(true)))(t)
	u.wantRestored(t, true)
	u.wantIn(t, u.spec.Logins[0], true)
	u.discard(t)
	u.wantDatabases(t, databases)
	u.drop(t)
	u.wantGone(t)
}

// A file with another size or sum is not loaded, nor one that holds more than the database may; and nothing is switched.
func uploadOther(t *testing.T, s Stand) {
	for _, change := range []func(*command.Source){
		func(c *command.Source) { c.SizeBytes++ },
		func(c *command.Source) { c.SHA256 = hex.EncodeToString(make([]byte, sha256.Size)) },
		func(c *command.Source) { c.MaxBytes = 1 },
	} {
		u := uploadingOf(t, s).whole(t)
		change(&u.load.Source)
		if report := u.loaded(t); report.State != command.LoadFailed || report.Reason != command.ReasonInvalid || report.Message == "" {
			t.Errorf("%+v", report)
		}
		s.refuses(t, u.fence, u.switching(true), command.ReasonNotFound)
		u.wantRestored(t, false)
		u.drop(t)
	}
}

// A file without pg_dump's closing line is loaded only where that is accepted, and noted then.
func uploadPart(t *testing.T, s Stand) {
	u := uploadingTable(t, s, "").whole(t)
	report := u.loaded(t)
	if report.State != command.LoadFailed || report.Reason != command.ReasonIncomplete || report.Message == "" {
		t.Errorf("%+v", report)
	}
	s.refuses(t, u.fence, u.switching(true), command.ReasonNotFound)
	u.wantRestored(t, false)
	u.fence, u.load.Source.AcceptIncomplete = newFence(), true
	if report := u.loaded(t); report.State != command.LoadReady || len(report.Notes) != 1 {
		t.Errorf("%+v", report)
	}
	must(ports.Do(bounded(t), s.Agent, u.fence, u.switching(true)))(t)
	u.wantRestored(t, true)
	u.discard(t)
	u.drop(t)
}
