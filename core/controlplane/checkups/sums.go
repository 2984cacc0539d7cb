package checkups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// checksums reads every backup file and its manifest as a download does, one after another, and compares them with what was
// written down when they were made. What is deleted meanwhile is no finding.
func (c *Checkups) checksums(ctx context.Context, s server.Server) (found []doctor.Finding, err error) {
	agent, err := c.base.Fleet.Agent(s)
	if err != nil {
		return []doctor.Finding{}, nil //nolint:nilerr // that it does not answer is a finding already
	}
	records, err := c.records(ctx, s)
	for _, r := range records {
		if err != nil {
			return nil, err
		}
		var backups []backup.Backup
		backups, err = c.backupsOf(ctx, r)
		for _, b := range backups {
			if b.DamagedAt != nil { // that is a finding already
				continue
			}
			f := doctor.Finding{
				Code: doctor.FileDamaged, DatabaseID: r.ID, Subject: string(b.Filename) + " of " + r.Name, Filename: b.Filename,
			}
			data := command.OpenBackup{DatabaseID: r.ID, Filename: b.Filename}
			manifest := command.OpenManifest{DatabaseID: r.ID, Filename: b.Filename}
			if f.Has = problemOf(ctx, agent, data, b.ChecksumSHA256); f.Has == "" {
				if f.Has = problemOf(ctx, agent, manifest, b.ManifestSHA256); f.Has != "" {
					f.Has = "manifest: " + f.Has
				}
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if f.Has != "" && c.stillThere(ctx, b) {
				found = append(found, f)
			}
		}
	}
	return found, err
}

func (c *Checkups) backupsOf(ctx context.Context, r database.Record) ([]backup.Backup, error) {
	return ports.Read(ctx, c.base.Store, func(ctx context.Context, tx ports.Tx) ([]backup.Backup, error) {
		return tx.Backups().List(ctx, r.ID, ports.Page{})
	})
}

// problemOf says what is wrong with a file; empty where it has the sum.
func problemOf(ctx context.Context, agent ports.Agent, q command.Question, sum string) string {
	file, err := agent.Open(ctx, q)
	switch {
	case command.RefusedFor(err, command.ReasonNotFound):
		return "there is no file"
	case err != nil:
		return "it cannot be read"
	}
	h := sha256.New()
	_, err = io.Copy(h, file.Body)
	err = errors.Join(err, file.Body.Close())
	switch {
	case err != nil:
		return "it cannot be read to its end"
	case hex.EncodeToString(h.Sum(nil)) != sum:
		return "its SHA-256 is another"
	}
	return ""
}

// stillThere reports whether a backup has its record still.
func (c *Checkups) stillThere(ctx context.Context, b backup.Backup) bool {
	_, err := ports.Read(ctx, c.base.Store, func(ctx context.Context, tx ports.Tx) (backup.Backup, error) {
		return tx.Backups().Get(ctx, b.DatabaseID, b.Filename)
	})
	return err == nil
}
