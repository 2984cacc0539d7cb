// Package heritage remembers what servers that are gone have left behind, for the databases that this one has from them.
package heritage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// Config is what a heritage is used with.
type Config struct {
	// Dir is a folder of this agent alone. It has the passphrases of archives.
	Dir string
	// Own is where this agent keeps backups, as command.Inherit has it.
	Own string
	// Blobs are those below what an Inherit calls the storage.
	Blobs func(storage string) (blob.Store, error)
	// Archive is this server's; nil: it keeps none, and can have nothing back out of that of another one.
	Archive *archive.Archive
	Files   *store.Store
}

// Heritage is what there is of servers that are gone.
type Heritage struct{ Config }

// New returns what was remembered in the folder.
func New(c Config) *Heritage { return &Heritage{c} }

// Inherit implements the question of that name.
func (h *Heritage) Inherit(ctx context.Context, q command.Inherit) (found command.Heritage, err error) {
	if q.Storage == h.Own {
		return found, command.Refuse(command.ReasonInvalid, "%q is where this agent keeps its own backups", q.Storage)
	}
	blobs, err := h.Blobs(q.Storage)
	if err != nil {
		return found, command.Refuse(command.ReasonInvalid, "storage: %s", err)
	}
	if err := h.write(q); err != nil {
		return found, err
	}
	switch owner, err := store.OwnerOf(ctx, blobs); {
	case err != nil:
		found.WhyNoBackups = text(err)
	case owner != q.Installation:
		found.WhyNoBackups = fmt.Sprintf("%s is where the server with the installation %s keeps backups, and not %s",
			blobs.Where(), owner, q.Installation)
	}
	if h.Archive == nil {
		found.Why = "this server keeps no archive itself, and so has no program to read that one with"
		return found, nil
	}
	until, err := h.Archive.LostUntil(ctx, lost(q))
	var away *archive.AwayError
	if errors.As(err, &away) { // which is not to be taken for an archive that is not there
		return found, command.Refuse(command.ReasonUnavailable, "%s", text(err))
	}
	if err != nil {
		found.Why = text(err)
		return found, nil
	}
	found.Until = &until
	return found, nil
}

// text is what an operator is told of an error, in one line.
func text(err error) string {
	var known *fault.Error
	if errors.As(err, &known) {
		if cause := errors.Unwrap(known); cause != nil {
			return cause.Error()
		}
		return known.Message
	}
	return err.Error()
}

func lost(q command.Inherit) archive.Lost {
	return archive.Lost{Installation: q.Installation, Storage: q.Storage, Passphrase: q.Key}
}

// Of is the archive of a server that is gone. POINT_NOT_RECOVERABLE: nobody has said what it has left.
func (h *Heritage) Of(installation string) (archive.Lost, error) {
	q, err := h.read(installation)
	return lost(q), err
}

// Adopt takes over a backup of a server that is gone, whose manifest has that SHA-256. The errors are those of Of and of
// Store.Adopt.
func (h *Heritage) Adopt(ctx context.Context, q command.AdoptBackup) error {
	left, err := h.read(q.Lost)
	if err != nil {
		return err
	}
	blobs, err := h.Blobs(left.Storage)
	if err != nil {
		return err
	}
	return h.Files.Adopt(ctx, blobs, q.DatabaseID, q.Filename, q.ManifestSHA256)
}

func (h *Heritage) path(installation string) string {
	return filepath.Join(h.Dir, installation+".json")
}

func (h *Heritage) read(installation string) (q command.Inherit, err error) {
	text, err := os.ReadFile(h.path(filepath.Base(installation)))
	if errors.Is(err, fs.ErrNotExist) {
		return q, fault.New(fault.PointNotRecoverable, "nobody has said what the server %s has left", installation)
	}
	if err != nil {
		return q, err
	}
	return q, json.Unmarshal(text, &q)
}

func (h *Heritage) write(q command.Inherit) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return err
	}
	return archive.WriteDurably(h.path(q.Installation), string(text))
}
