package spec

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

func announcing(file []byte) wire.AnnounceUpload {
	sum := sha256.Sum256(file)
	return wire.AnnounceUpload{SizeBytes: int64(len(file)), ChecksumSHA256: hex.EncodeToString(sum[:])}
}

// uploadable is a database of the customer that has a single login and may be restored from uploads.
func (c *Customer) uploadable() Created {
	c.stage.Helper()
	made := c.CreatesAs(NewDatabase{Name: c.stage.Name("dumps"), DisplayName: "D", RoleModel: "single_login"})
	c.stage.OK(c.stage.Operator.Enroll(made.ID, "restore-upload"))
	return made
}

// dumpOf is a dump of a database that holds a note, as customers have one.
func (c *Customer) dumpOf(note string) []byte {
	c.stage.Helper()
	source := c.CreatesAs(NewDatabase{Name: c.stage.Name("source"), DisplayName: "S", RoleModel: "single_login"})
	c.stage.OK(c.stage.Connects(source.Login()).Write(note))
	return c.Downloads(source.ID, c.FinishesBackup(source.ID))
}

// gzipped is a text as it is uploaded.
func gzipped(text string) []byte {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zip, text) // a buffer takes everything
	_ = zip.Close()
	return packed.Bytes()
}

// Announces announces a file.
func (c *Customer) Announces(of id.DatabaseID, file []byte) wire.Upload {
	c.stage.Helper()
	return must(c.Restores.AnnounceUpload(ctx, of, announcing(file)))(c.stage)
}

// Uploads announces a file and sends it.
func (c *Customer) Uploads(of id.DatabaseID, file []byte) wire.Upload {
	c.stage.Helper()
	u := c.Announces(of, file)
	c.stage.OK(c.Restores.SendUpload(ctx, of, u.UploadID, bytes.NewReader(file), int64(len(file))))
	return u
}

// completing is the body that completes an upload.
func completing(u wire.Upload) wire.CompleteUpload {
	return wire.CompleteUpload{UploadID: u.UploadID, ConfirmDisconnect: true}
}

// Completes restores a database from an upload, and returns the operation as it ended.
func (c *Customer) Completes(of id.DatabaseID, u wire.Upload) wire.Operation {
	c.stage.Helper()
	return c.Follows(must(c.Restores.CompleteUpload(ctx, of, completing(u)))(c.stage).Operation)
}

// puts sends a part of an upload as it stands.
func (c *Customer) puts(u wire.Upload, part string, body []byte) Answer {
	c.stage.Helper()
	header := map[string]string{"Content-Type": "application/gzip"}
	if part != "" {
		header["Content-Range"] = part
	}
	return c.stage.sends(Request{Method: "PUT", Path: u.UploadURL, Key: c.Key.Text, Header: header, Body: body})
}
