package driver

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/acceptance/backupfiles"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/ports"
)

// predated is a manifest as it was before there were additional roles, with its SHA-256.
func predated(text []byte) (old []byte, sum string, err error) {
	m, err := backup.ParseManifest(text)
	if err != nil {
		return nil, "", err
	}
	m.FormatVersion = 2
	old, err = m.Encode()
	return old, fmt.Sprintf("%x", sha256.Sum256(old)), err
}

// predate does it on fakes.
func (s *service) predate(of spec.Created, file backup.Filename) (err error) {
	var sum string
	s.agent.Tamper(of.ID, file, func(text []byte) (old []byte) {
		old, sum, err = predated(text)
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
		b.RoleManifest, b.ManifestSHA256 = false, sum
		if err := tx.Backups().Remove(ctx, of.ID, file); err != nil {
			return err
		}
		return tx.Backups().Add(ctx, b)
	})
}

// predate does it where backups are, and in the metadata.
func (r *realService) predate(of spec.Created, file backup.Filename) (err error) {
	set, err := r.BackupSet(context.Background(), of.ID, file)
	if err != nil {
		return err
	}
	text, err := set.Read(backupfiles.Manifest)
	if err != nil {
		return err
	}
	old, sum, err := predated(text)
	if err != nil {
		return err
	}
	if err := set.Write(backupfiles.Manifest, old); err != nil {
		return err
	}
	metadata, err := sql.Open("postgres", r.MetadataURL())
	if err != nil {
		return err
	}
	_, err = metadata.ExecContext(context.Background(), `UPDATE backups SET role_manifest = false, manifest_sha256 = $3
		WHERE database_id = $1 AND filename = $2`, of.ID, file, sum)
	return errors.Join(err, metadata.Close())
}
