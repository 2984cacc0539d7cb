package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var signingKeyTable = tableOf[certificate.Key]("certificate_keys")

var (
	addSigningKey     = define(signingKeyTable.insert())
	currentSigningKey = define(signingKeyTable.read().Where("t.retired_at IS NULL"))
	retireSigningKey  = written(
		"UPDATE certificate_keys SET retired_at = $1, sealed_seed = NULL WHERE id = $2 AND retired_at IS NULL")
	listSigningKeys = define(signingKeyTable.read().Where("(t.created_at, t.id) < (?, ?)").
			OrderBy("t.created_at DESC", "t.id DESC").Suffix("LIMIT ?"))
)

type signingKeys struct{ session }

func (k signingKeys) Add(ctx context.Context, row certificate.Key) error {
	return k.write(ctx, addSigningKey, signingKeyTable.values(row)...)
}

func (k signingKeys) Current(ctx context.Context) (certificate.Key, error) {
	return one[certificate.Key](ctx, k.session, currentSigningKey)
}

func (k signingKeys) Retire(ctx context.Context, key id.CertificateKeyID, now time.Time) error {
	return k.mustChange(ctx, ports.ErrNoRow, retireSigningKey, now, key)
}

func (k signingKeys) List(ctx context.Context, p ports.Page) ([]certificate.Key, error) {
	return pageOf[certificate.Key](ctx, k.session, listSigningKeys, backward, p)
}
