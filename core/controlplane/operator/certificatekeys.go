package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// CreateCertificateKey makes the first key. VALIDATION_ERROR on "key" where one signs already.
func (o *Operator) CreateCertificateKey(ctx context.Context) (certificate.Key, error) {
	fresh, err := o.newCertificateKey()
	if err != nil {
		return certificate.Key{}, err
	}
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return o.beginCertificateKey(ctx, tx, fresh, audit.CertificateKeyCreated, audit.Details{})
	})
	return fresh.Public(), err
}

// RotateCertificateKey retires the key that signs, whose private part is gone then, and makes another one. VALIDATION_ERROR on
// "key" where no key signs, or somebody else has replaced it at the same time.
func (o *Operator) RotateCertificateKey(ctx context.Context) (retired, fresh certificate.Key, err error) {
	retired, err = ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) (certificate.Key, error) {
		return tx.SigningKeys().Current(ctx)
	})
	if err != nil {
		none := fault.Invalid("key", "none signs; pgherd admin certificate-key create makes one")
		return certificate.Key{}, certificate.Key{}, plane.NotFound(err, none)
	}
	if fresh, err = o.newCertificateKey(); err != nil {
		return certificate.Key{}, certificate.Key{}, err
	}
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.SigningKeys().Retire(ctx, retired.ID, fresh.CreatedAt); err != nil {
			return plane.NotFound(err, fault.Invalid("key", "%s was replaced by somebody else just now", retired.ID))
		}
		return o.beginCertificateKey(ctx, tx, fresh, audit.CertificateKeyRotated, audit.Details{"retired": string(retired.ID)})
	})
	if err != nil {
		return certificate.Key{}, certificate.Key{}, err
	}
	retired.RetiredAt = &fresh.CreatedAt
	return retired.Public(), fresh.Public(), nil
}

// CertificateKeys lists every key that ever signed, newest first, without private parts.
func (o *Operator) CertificateKeys(ctx context.Context) ([]certificate.Key, error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]certificate.Key, error) {
		list, err := tx.SigningKeys().List(ctx, ports.Page{})
		return certificate.Published(list), err
	})
}

func (o *Operator) newCertificateKey() (certificate.Key, error) {
	seed := o.plane.Entropy.Seed()
	fresh := certificate.NewKey(plane.NewID[id.CertificateKeyID](o.plane.Entropy), seed, o.plane.Clock.Now())
	var err error
	fresh.SealedSeed, err = o.plane.Secrets.Seal(seed[:], fresh.SecretContext())
	return fresh, err
}

// beginCertificateKey stores a key that signs from now on, and who has made it.
func (o *Operator) beginCertificateKey(
	ctx context.Context, tx ports.Tx, fresh certificate.Key, what audit.Action, details audit.Details,
) error {
	if err := tx.SigningKeys().Add(ctx, fresh); err != nil {
		return err
	}
	details["keyId"] = string(fresh.ID)
	return o.plane.Audit(ctx, tx, database.Record{}, audit.Operator, what, details)
}
