package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// CheckSigned checks the signature of a certificate against the keys that the service publishes, and that what was signed has a
// format.
func CheckSigned(ctx context.Context, c *apiclient.Client, signed wire.Certificate, format string) error {
	key, err := Named(c.Certificates.ListKeys().All(ctx), string(signed.KeyID), "published key of certificates",
		func(k wire.CertificateKey) string { return string(k.KeyID) })
	if err != nil {
		return err
	}
	if len(key.PublicKey) != ed25519.PublicKeySize || !ed25519.Verify(key.PublicKey, signed.Document, signed.Signature) {
		return fmt.Errorf("the signature of the certificate is not that of key %s", signed.KeyID)
	}
	var says struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(signed.Document, &says); err != nil {
		return fmt.Errorf("what was signed is no certificate: %w", err)
	}
	if says.Format != format {
		return fmt.Errorf("the certificate has the format %q, which this version does not know", says.Format)
	}
	return nil
}

// StoreNew writes JSON into a file that must not be there.
func StoreNew(path string, value any) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // A part of a certificate is none.
	}
	return nil
}
