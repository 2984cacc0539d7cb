package secretbox

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// ErrKeyset means that a text is not a usable key ring. It never quotes the text.
var ErrKeyset = errors.New("the secret key ring is not a Tink keyset in JSON with AES-GCM keys and a primary")

// NewKeyset returns a key ring with one fresh key, as JSON.
func NewKeyset() ([]byte, error) {
	return withNewPrimary(keyset.NewManager())
}

// RotateKeyset returns the ring with a fresh key as its primary. Every older key stays, for reading.
func RotateKeyset(ring []byte) ([]byte, error) {
	handle, err := parseKeyset(ring)
	if err != nil {
		return nil, err
	}
	return withNewPrimary(keyset.NewManagerFromHandle(handle))
}

// PruneKeyset returns the ring with only its primary. Values sealed by other keys can then no longer be opened, so NeedsReseal
// must be false for every stored value.
func PruneKeyset(ring []byte) ([]byte, error) {
	handle, err := parseKeyset(ring)
	if err != nil {
		return nil, err
	}
	info := handle.KeysetInfo()
	manager := keyset.NewManagerFromHandle(handle)
	for _, key := range info.GetKeyInfo() {
		if key.GetKeyId() == info.GetPrimaryKeyId() {
			continue
		}
		if err := manager.Delete(key.GetKeyId()); err != nil {
			return nil, fmt.Errorf("dropping an old key: %w", err)
		}
	}
	return formatKeyset(manager)
}

func withNewPrimary(manager *keyset.Manager) ([]byte, error) {
	key, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if err := manager.SetPrimary(key); err != nil {
		return nil, fmt.Errorf("making the new key primary: %w", err)
	}
	return formatKeyset(manager)
}

func formatKeyset(manager *keyset.Manager) ([]byte, error) {
	handle, err := manager.Handle()
	if err != nil {
		return nil, fmt.Errorf("building the key ring: %w", err)
	}
	var text bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)); err != nil {
		return nil, fmt.Errorf("writing the key ring: %w", err)
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}

// parseKeyset drops the parser's own error: it may quote key material.
func parseKeyset(ring []byte) (*keyset.Handle, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(ring)))
	if err != nil {
		return nil, ErrKeyset
	}
	if _, err := handle.Primary(); err != nil {
		return nil, ErrKeyset
	}
	return handle, nil
}
