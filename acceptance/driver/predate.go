package driver

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/ports"
)

// predated is a manifest as it was before there were additional roles.
func predated(text []byte) ([]byte, error) {
	m, err := backup.ParseManifest(text)
	if err != nil {
		return nil, err
	}
	m.FormatVersion = 2
	return m.Encode()
}

// predate does it on fakes.
func (s *service) predate(of spec.Created, file backup.Filename) (err error) {
	s.agent.Tamper(of.ID, file, func(text []byte) []byte {
		var old []byte
		old, err = predated(text)
		return old
	})
	if err != nil {
		return err
	}
	return s.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		b, err := tx.Backups().Get(ctx, of.ID, file)
		if err != nil {
			return err
		}
		b.RoleManifest, b.ManifestSHA256 = false, ""
		if err := tx.Backups().Remove(ctx, of.ID, file); err != nil {
			return err
		}
		return tx.Backups().Add(ctx, b)
	})
}

// predate does it in the agent's folder and in the metadata.
func (r *realService) predate(of spec.Created, file backup.Filename) (err error) {
	path := filepath.Join(r.BackupDir(), string(of.ID), file.Stem()+".manifest.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	old, err := predated(text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, old, 0o600); err != nil { // in place: the file stays the agent's
		return err
	}
	metadata, err := sql.Open("postgres", r.MetadataURL())
	if err != nil {
		return err
	}
	_, err = metadata.ExecContext(context.Background(), `UPDATE backups SET role_manifest = false, manifest_sha256 = ''
		WHERE database_id = $1 AND filename = $2`, of.ID, file)
	return errors.Join(err, metadata.Close())
}
