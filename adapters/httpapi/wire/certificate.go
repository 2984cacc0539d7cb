package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Certificate is a signed statement that a backup was restored in isolation and found equal. Document is the exact text that was
// signed, which is JSON, and Signature its Ed25519 signature; both are base64.
type Certificate struct {
	KeyID     id.CertificateKeyID `json:"keyId"`
	Document  []byte              `json:"document"`
	Signature []byte              `json:"signature"`
}

// CertificateKey is the public part of a key that signs certificates, or did so until RetiredAt. PublicKey is its 32 bytes in
// base64, PEM the same for openssl.
type CertificateKey struct {
	KeyID     id.CertificateKeyID `json:"keyId"`
	Algorithm string              `json:"algorithm" enum:"Ed25519"`
	PublicKey []byte              `json:"publicKey"`
	PEM       string              `json:"pem"`
	CreatedAt time.Time           `json:"createdAt"`
	RetiredAt *time.Time          `json:"retiredAt"`
}
