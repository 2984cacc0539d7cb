package provision

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Found completes the record of a database that stands already, with the key that its backups have. Nobody knows the passwords of
// its logins: each gets another one, which is not in force, under the generation that its server knows.
func Found(
	p *base.Base, r database.Record, key []byte, generations map[database.Login]int64,
) (d Draft, err error) {
	r.CreatedAt = p.Clock.Now()
	r.NextBackupAt, r.NextReadingAt = backup.Next(r.ID, r.Schedule, r.CreatedAt), backup.NextReading(r.ID, r.CreatedAt)
	d = Draft{Record: r, verified: new(sync.WaitGroup), key: backup.Key{DatabaseID: r.ID}}
	if d.key.Sealed, err = p.Secrets.Seal(key, d.key.SecretContext()); err != nil {
		return d, err
	}
	return d, d.makeLogins(p, func(l database.Login) int64 { return max(1, generations[l]) })
}

// FoundRole completes an additional role that stands already. One that may log in gets a password that is not in force, under the
// generation that its server knows.
func FoundRole(p *base.Base, r role.Role) (role.Role, error) {
	r.ID, r.SetupID = base.NewID[id.RoleID](p.Entropy), base.NewID[id.OperationID](p.Entropy)
	r.CreatedAt = p.Clock.Now()
	if r.Status != role.Ready {
		return r, nil
	}
	password, verifier := makePassword(p)
	var err error
	if r.Sealed, err = p.Secrets.Seal([]byte(password), r.SecretContext()); err == nil {
		r.Verifier = verifier()
	}
	return r, err
}

// StoreFound is Store of a database whose server is told nothing: it has the networks of its allowlist, and its roles.
func (d *Draft) StoreFound(
	ctx context.Context, tx ports.Tx, roles []role.Role, allowlist []database.AllowlistEntry, also func() error,
) error {
	if _, err := tx.Accounts().LockForQuota(ctx, d.Record.AccountID); err != nil { // a suspension waits, and finds the database
		return err
	}
	return d.store(ctx, tx, func() error { // it stands there already
		for _, r := range roles {
			if err := tx.Roles().Add(ctx, r); err != nil {
				return err
			}
		}
		for _, e := range allowlist {
			if err := tx.Allowlist().Add(ctx, e); err != nil {
				return err
			}
		}
		return also()
	})
}
