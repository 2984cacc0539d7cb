package controlplane_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/uploads"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

// packs makes a text the file.
func (u *uploader) packs(text string) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text) // a buffer takes everything
	_ = z.Close()
	hash := sha256.Sum256(out.Bytes())
	u.file, u.sum = out.Bytes(), hex.EncodeToString(hash[:])
}

// uploader is the owner of a database with a single login that may be restored from uploads.
type uploader struct {
	*world
	r    access.Reached
	file []byte
	sum  string
}

func newUploader(t *testing.T, m database.RoleModel) *uploader {
	t.Helper()
	return newWorld(t).uploader("shop", m)
}

func (w *world) uploader(name string, m database.RoleModel) *uploader {
	w.t.Helper()
	q := request(name)
	q.RoleModel = &m
	made := must(w.Databases.Create(w.ctx, w.caller, q))(w.t)
	ok(w.t, w.Operator.SetFeature(w.ctx, "restore", true))
	ok(w.t, w.Operator.Enroll(w.ctx, made.Record.ID, "restore-upload"))
	w.latest = made
	return w.uploading()
}

// uploading is the owner of the database that was made last, who may restore it from uploads.
func (w *world) uploading() *uploader {
	w.t.Helper()
	u := &uploader{world: w}
	u.r = must(w.Access.Reach(w.ctx, w.caller, w.source(), account.Own, rollout.RestoreUpload))(w.t)
	u.packs("CREATE TABLE uploaded (n int);\n" + upload.ClosingLine)
	return u
}

func (u *uploader) announce() (upload.Upload, error) {
	return u.Uploads.Announce(u.ctx, u.r, int64(len(u.file)), u.sum)
}

func (u *uploader) announced() upload.Upload {
	u.t.Helper()
	return must(u.announce())(u.t)
}

// part is the header of a part of the file.
func (u *uploader) part(from, to int) string {
	return fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(u.file))
}

func (u *uploader) send(of upload.Upload, from, to int) (int64, error) {
	return u.Uploads.Send(u.ctx, u.r, of.ID, uploads.Content{
		Range: u.part(from, to), Length: int64(to - from), Body: bytes.NewReader(u.file[from:to]),
	})
}

// from sends what body brings as the file from its beginning.
func (u *uploader) from(ctx context.Context, of upload.Upload, body io.Reader) error {
	return errOf(u.Uploads.Send(ctx, u.r, of.ID, uploads.Content{Length: int64(len(u.file)), Body: body}))
}

func (u *uploader) wantReceived(of upload.Upload, want int64) {
	u.t.Helper()
	question := uploads.Content{Range: fmt.Sprintf("bytes */%d", len(u.file))}
	equal(u.t, "received", must(u.Uploads.Send(u.ctx, u.r, of.ID, question))(u.t), want)
}

func (u *uploader) complete(of upload.Upload) (operation.Operation, error) {
	return u.Uploads.Complete(u.ctx, u.r, of.ID, restore.Consents{})
}

// whole is an upload of which all has come.
func (u *uploader) whole() upload.Upload {
	u.t.Helper()
	of := u.announced()
	equal(u.t, "received", must(u.send(of, 0, len(u.file)))(u.t), int64(len(u.file)))
	return of
}

// wantNothingLeft expects that neither a record nor a file remains after the periodic tasks.
func (u *uploader) wantNothingLeft() {
	u.t.Helper()
	ok(u.t, u.Rounds.Once(u.ctx))
	equal(u.t, "files", u.server.Uploads(), 0)
	equal(u.t, "records", u.records(), 0)
}

func (u *uploader) records() int {
	u.t.Helper()
	return len(must(ports.Read(u.ctx, u.store, func(ctx context.Context, tx ports.Tx) ([]upload.Upload, error) {
		return tx.Uploads().OfAccount(ctx, u.account.ID)
	}))(u.t))
}
