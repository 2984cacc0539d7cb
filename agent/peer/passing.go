package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

var (
	errNoFile  = command.Refuse(command.ReasonNotFound, "there is no such file")
	errNotYet  = command.Refuse(command.ReasonUnavailable, "that is not made yet")
	errAltered = command.Refuse(command.ReasonAltered, "the file was made anew")
)

// passing sends a part of the file that passes, which may still be written. Who asks for what is not made yet asks again.
func (a *Admissions) passing(ctx context.Context, v visit, w http.ResponseWriter, r *http.Request) error {
	name := backup.Filename(r.PathValue("filename"))
	part := Part(r.PathValue("part"))
	files := a.files.Passing()
	growing, found, err := files.Growing(v.db, name) // before the manifest: what is complete is not shown any more
	if err != nil {
		return err
	}
	m, err := files.Manifest(ctx, v.db, name)
	switch {
	case fault.Has(err, fault.BackupNotFound) && !found:
		return errNotYet
	case fault.Has(err, fault.BackupNotFound):
		return sendGrowing(ctx, v, growing, part, w, r)
	case err != nil:
		return err
	case m.OperationID != v.op:
		return errNoFile
	}
	if err := isMade(r, part, m.CreatedAt); err != nil {
		return err
	}
	var file io.ReadCloser
	var size int64
	switch part {
	case Head:
		var text []byte
		text, err = json.Marshal(m.Manifest)
		file, size = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	case File:
		file, size, err = files.Open(ctx, v.db, name)
	case Schema:
		file, size, err = files.OpenSchema(ctx, v.db, name)
	case Manifest:
		file, size, err = files.OpenManifest(ctx, v.db, name)
	}
	if err != nil {
		return err
	}
	return send(ctx, w, r, file, size)
}

// sendGrowing sends what can be had of a file that is being written.
func sendGrowing(ctx context.Context, v visit, g store.Growing, part Part, w http.ResponseWriter, r *http.Request) error {
	if g.OperationID != v.op {
		return errNoFile
	}
	if err := isMade(r, part, g.CreatedAt); err != nil {
		return err
	}
	switch part {
	case Schema, Manifest: // they come last
	case Head:
		return send(ctx, w, r, io.NopCloser(bytes.NewReader(g.Head)), int64(len(g.Head)))
	case File:
		file, err := g.Open(ctx)
		if errors.Is(err, store.ErrGone) {
			return errNotYet
		}
		if err != nil {
			return err
		}
		return send(ctx, w, r, file, server.Growing)
	}
	return errNotYet
}

// isMade refuses what is no part, or one of another file than is asked for. A Head is of whichever file there is.
func isMade(r *http.Request, part Part, at time.Time) error {
	switch part {
	case Head:
	case File, Schema, Manifest:
		if r.URL.Query().Get(madeKey) != made(at) {
			return errAltered
		}
	default:
		return errNoFile
	}
	return nil
}

// made tells a file from another one of the same name.
func made(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
