// Package certificates issues restore and recovery certificates, and publishes the keys that sign them.
package certificates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/ports"
)

// Certificates issues certificates, and publishes the keys that sign them.
type Certificates struct {
	base   *base.Base
	making *base.Limiter
}

// Each certificate that is being made or sent takes some certificate.MaxDocument of memory. So that many at a time do not take
// it all, this process has few, and an account one of them: one that makes many takes turns with others.
const (
	atATime    = 8
	perAccount = 4 // those that wait are counted too
	// makeWait is how long an agent may take for a manifest, of which it can have backup.MaxManifestBytes.
	makeWait = time.Minute
)

// thisProcess is the server of the gate before making.
const thisProcess id.ServerID = "this process"

// New makes the use cases.
func New(p *base.Base) *Certificates {
	limits := slot.Limits{PerAccount: perAccount, Share: 1, PerServer: atATime}
	return &Certificates{base: p, making: base.NewLimiter(limits, p.DownloadWait,
		"another certificate is being made for the account", "too many certificates are being made at the moment")}
}

// Issued is a certificate that takes memory until Done is called.
type Issued struct {
	certificate.Certificate
	Done func()
}

// Issue makes the certificate of a backup. It is the same each time, until another key signs. BACKUP_NOT_FOUND.
// FEATURE_NOT_AVAILABLE: no key signs. BACKUP_NOT_VERIFIED: the backup was not restored and compared. BACKUP_CONFLICT: its
// database has too many tables. AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE: its manifest cannot be read. RATE_LIMITED, SERVER_BUSY:
// too many are being made.
func (c *Certificates) Issue(ctx context.Context, r access.Reached, filename backup.Filename) (i Issued, err error) {
	if err := r.Permit(account.See); err != nil {
		return Issued{}, err
	}
	stored, err := c.find(ctx, r, filename)
	if err != nil {
		return Issued{}, err
	}
	release, err := r.MayCall(ctx, c.base)
	if err != nil {
		return Issued{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, makeWait)
	defer cancel()
	manifest, err := c.open(ctx, r, stored)
	if err != nil {
		return Issued{}, err
	}
	defer manifest.Body.Close()
	i.Done, err = c.making.Enter(ctx, r.Caller().Account.ID, thisProcess)
	if err != nil {
		return Issued{}, err
	}
	defer func() {
		if i.Document == nil { // also where this panics
			i.Done()
		}
	}()
	facts, err := read(manifest)
	if err != nil {
		return i, err
	}
	i.Certificate, err = c.sign(ctx, r, stored, facts)
	return i, err
}

// find reads the record of the backup, and decides over it. It refuses at once where no key signs.
func (c *Certificates) find(ctx context.Context, r access.Reached, filename backup.Filename) (stored backup.Backup, err error) {
	err = c.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if stored, err = tx.Backups().Get(ctx, r.Record().ID, filename); err != nil {
			return base.NotFound(err, base.ErrBackupNotFound())
		}
		if _, err := currentKey(ctx, tx); err != nil {
			return err
		}
		return certificate.Decide(stored)
	})
	return stored, err
}

func currentKey(ctx context.Context, tx ports.Tx) (certificate.Key, error) {
	key, err := tx.SigningKeys().Current(ctx)
	return key, base.NotFound(err, certificate.ErrNoKey())
}

const noManifest = "the database server cannot hand the backup's manifest out now"

// open opens the manifest at the agent.
func (c *Certificates) open(ctx context.Context, r access.Reached, stored backup.Backup) (ports.File, error) {
	agent, err := c.base.AgentOf(ctx, r.Record().ServerID)
	if err != nil {
		return ports.File{}, err
	}
	file, err := agent.Open(ctx, command.OpenManifest{DatabaseID: stored.DatabaseID, Filename: stored.Filename})
	if err == nil && file.Size > backup.MaxManifestBytes {
		err = errors.Join(fmt.Errorf("the manifest has %d bytes", file.Size), file.Body.Close())
	}
	if err != nil {
		return ports.File{}, base.FileError(err, noManifest)
	}
	return file, nil
}

func read(manifest ports.File) (certificate.Facts, error) {
	facts, err := certificate.ReadFacts(io.LimitReader(manifest.Body, manifest.Size))
	if err != nil && !fault.Has(err, fault.BackupConflict) {
		err = fault.Wrap(err, fault.AgentError, noManifest)
	}
	return facts, err
}

// sign reads the key only now: the manifest may have taken a minute, in which a key may have been retired.
func (c *Certificates) sign(
	ctx context.Context, r access.Reached, stored backup.Backup, facts certificate.Facts,
) (none certificate.Certificate, _ error) {
	key, err := ports.Read(ctx, c.base.Store, currentKey)
	if err != nil {
		return none, err
	}
	document, err := certificate.Write(key.ID, r.Record().Name, stored, facts)
	if err != nil {
		return none, err
	}
	return c.signed(key, document)
}

func (c *Certificates) signed(key certificate.Key, document []byte) (none certificate.Certificate, _ error) {
	seed, err := c.base.Secrets.Open(key.SealedSeed, key.SecretContext())
	if err != nil {
		return none, err
	}
	return key.Sign(seed, document)
}

// IssueRecovery makes the certificate of the last drill that has proven a moment of a database. It is the same each time, until
// another key signs or another moment is proven. CERTIFICATE_NOT_FOUND. FEATURE_NOT_AVAILABLE: no key signs.
func (c *Certificates) IssueRecovery(ctx context.Context, r access.Reached) (made certificate.Certificate, err error) {
	if err := r.Permit(account.See); err != nil {
		return made, err
	}
	var last drill.Drill
	var key certificate.Key
	err = c.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if key, err = currentKey(ctx, tx); err != nil {
			return err
		}
		last, err = tx.Drills().Last(ctx, ports.DrillFilter{DatabaseID: r.Record().ID, Outcome: drill.Proven})
		return base.NotFound(err, certificate.ErrNoRecovery())
	})
	if err != nil {
		return made, err
	}
	document, err := certificate.WriteRecovery(key.ID, last)
	if err != nil {
		return made, err
	}
	return c.signed(key, document)
}

// Keys publishes every key that ever signed, newest first, and the position of the last one where there are more.
func (c *Certificates) Keys(ctx context.Context, p ports.Page) ([]certificate.Key, *ports.Position, error) {
	return base.List(ctx, c.base.Store, p,
		func(k certificate.Key) ports.Position { return ports.Position{At: k.CreatedAt, ID: string(k.ID)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]certificate.Key, error) {
			list, err := tx.SigningKeys().List(ctx, p)
			return certificate.Published(list), err
		})
}
