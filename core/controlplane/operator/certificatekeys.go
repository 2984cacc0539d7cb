package operator

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/controlplane/base"
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
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return o.beginCertificateKey(ctx, tx, fresh, audit.CertificateKeyCreated, audit.Details{})
	})
	return fresh.Public(), err
}

// unnamedAfter is how old a key must be to be retired without being named.
const unnamedAfter = time.Minute

// RotateCertificateKey retires the key that signs, whose private part is gone then, and makes another one. An operator who names
// the key to be retired retires no other: of two who do so, one is refused. One who names none does not retire the key that
// another operator has just made. VALIDATION_ERROR on "key" where no key signs, not that one, or an unnamed one since just now.
func (o *Operator) RotateCertificateKey(
	ctx context.Context, named id.CertificateKeyID,
) (retired, fresh certificate.Key, err error) {
	if retired, err = o.signing(ctx, named); err != nil {
		return certificate.Key{}, certificate.Key{}, err
	}
	if fresh, err = o.newCertificateKey(); err != nil {
		return certificate.Key{}, certificate.Key{}, err
	}
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.SigningKeys().Retire(ctx, retired.ID, fresh.CreatedAt); err != nil {
			return base.NotFound(err, errSignsNoMore(retired.ID))
		}
		return o.beginCertificateKey(ctx, tx, fresh, audit.CertificateKeyRotated, audit.Details{"retired": string(retired.ID)})
	})
	if err != nil {
		return certificate.Key{}, certificate.Key{}, err
	}
	retired.RetiredAt = &fresh.CreatedAt
	return retired.Public(), fresh.Public(), nil
}

// signing is the key that signs, which is the named one where one is named.
func (o *Operator) signing(ctx context.Context, named id.CertificateKeyID) (certificate.Key, error) {
	current, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (certificate.Key, error) {
		return tx.SigningKeys().Current(ctx)
	})
	switch {
	case err != nil:
		return current, base.NotFound(err, fault.Invalid("key", "none signs; pgherd admin certificate-key create makes one"))
	case named != "" && named != current.ID:
		return current, errSignsNoMore(named)
	case named == "" && o.base.Clock.Now().Sub(current.CreatedAt) < unnamedAfter:
		return current, fault.Invalid("key", "%s has signed only since %s: name it with --key to replace it", current.ID,
			current.CreatedAt.UTC().Format(time.RFC3339))
	}
	return current, nil
}

func errSignsNoMore(k id.CertificateKeyID) error {
	return fault.Invalid("key", "%s does not sign, or was replaced by somebody else just now", k)
}

// CertificateKeys lists every key that ever signed, newest first, without private parts.
func (o *Operator) CertificateKeys(ctx context.Context) ([]certificate.Key, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]certificate.Key, error) {
		list, err := tx.SigningKeys().List(ctx, ports.Page{})
		return certificate.Published(list), err
	})
}

func (o *Operator) newCertificateKey() (certificate.Key, error) {
	seed := o.base.Entropy.Seed()
	fresh := certificate.NewKey(base.NewID[id.CertificateKeyID](o.base.Entropy), seed, o.base.Clock.Now())
	var err error
	fresh.SealedSeed, err = o.base.Secrets.Seal(seed[:], fresh.SecretContext())
	return fresh, err
}

// beginCertificateKey stores a key that signs from now on, and logs it.
func (o *Operator) beginCertificateKey(
	ctx context.Context, tx ports.Tx, fresh certificate.Key, what audit.Action, details audit.Details,
) error {
	if err := tx.SigningKeys().Add(ctx, fresh); err != nil {
		return err
	}
	details["keyId"] = string(fresh.ID)
	return o.record(ctx, tx, "", what, details)
}
