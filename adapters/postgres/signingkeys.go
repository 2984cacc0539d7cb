package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var signingKeyTable = pgdb.TableOf[certificate.Key]("certificate_keys").Added()

var (
	currentSigningKey = pgdb.Define(signingKeyTable.Read().Where("t.retired_at IS NULL"))
	retireSigningKey  = pgdb.Written(
		"UPDATE certificate_keys SET retired_at = $1, sealed_seed = NULL WHERE id = $2 AND retired_at IS NULL")
	listSigningKeys = pgdb.Define(signingKeyTable.Read().Where("(t.created_at, t.id) < (?, ?)").
			OrderBy("t.created_at DESC", "t.id DESC").Suffix("LIMIT ?"))
)

type signingKeys struct{ pgdb.Rows[certificate.Key] }

func (k signingKeys) Current(ctx context.Context) (certificate.Key, error) {
	return k.One(ctx, currentSigningKey)
}

func (k signingKeys) Retire(ctx context.Context, key id.CertificateKeyID, now time.Time) error {
	return k.MustChange(ctx, ports.ErrNoRow, retireSigningKey, now, key)
}

func (k signingKeys) List(ctx context.Context, p ports.Page) ([]certificate.Key, error) {
	return k.Page(ctx, listSigningKeys, pgdb.Backward, p)
}
