package apiclient

import (
	"context"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Certificates are the calls about restore certificates.
type Certificates struct{ c *Client }

const certificateKeysPath = "/certificate-keys"

// Get reads the certificate of a backup.
func (x Certificates) Get(
	ctx context.Context, database id.DatabaseID, file backup.Filename, opts ...Option,
) (wire.Certificate, error) {
	return ask[wire.Certificate](ctx, x.c, get(backupsPath+"/%s/certificate", string(database), string(file)), opts)
}

// Keys reads one page of the keys that ever signed certificates, newest first. It needs no API key.
func (x Certificates) Keys(ctx context.Context, p Page, opts ...Option) (wire.Page[wire.CertificateKey], error) {
	return listOf[wire.CertificateKey](ctx, x.c, p, get(certificateKeysPath), opts)
}

// AllKeys reads every such key.
func (x Certificates) AllKeys(ctx context.Context, opts ...Option) iter.Seq2[wire.CertificateKey, error] {
	return allOf[wire.CertificateKey](ctx, x.c, get(certificateKeysPath), opts)
}
