package secretbox

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/pgherd/pgherd/core/keyring"
)

// ErrKeyset means that a text is not a usable key ring. It never quotes the text.
var ErrKeyset = errors.New("the secret key ring is not a Tink keyset in JSON with AES-GCM keys and a primary")

// NewKeyset returns a key ring with one fresh key, as JSON.
func NewKeyset() ([]byte, error) {
	return withNewPrimary(keyset.NewManager())
}

// StageKeyset returns the ring with a key that is none of those that are known: one that it has already, as an earlier attempt
// may have left it, or else a fresh one. Its primary stays.
func StageKeyset(ring []byte, known []keyring.Fingerprint) ([]byte, keyring.Fingerprint, error) {
	handle, err := parseKeyset(ring)
	if err != nil {
		return nil, "", err
	}
	isKnown := func(f fingerprinted) bool { return slices.Contains(known, f.of) }
	if left := slices.DeleteFunc(fingerprints(handle), isKnown); len(left) > 0 {
		return ring, left[0].of, nil
	}
	manager := keyset.NewManagerFromHandle(handle)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, "", fmt.Errorf("making a key: %w", err)
	}
	staged, err := manager.Handle()
	if err != nil {
		return nil, "", fmt.Errorf("building the key ring: %w", err)
	}
	list := fingerprints(staged)
	i := slices.IndexFunc(list, func(f fingerprinted) bool { return f.id == id })
	text, err := formatKeyset(manager)
	return text, list[i].of, err
}

// PromoteKeyset returns the ring with another one of its keys as its primary: ErrNoSuchKey where it does not have it.
func PromoteKeyset(ring []byte, to keyring.Fingerprint) ([]byte, error) {
	handle, err := parseKeyset(ring)
	if err != nil {
		return nil, err
	}
	for _, f := range fingerprints(handle) {
		if f.of != to {
			continue
		}
		manager := keyset.NewManagerFromHandle(handle)
		if err := manager.SetPrimary(f.id); err != nil {
			return nil, fmt.Errorf("making a key primary: %w", err)
		}
		return formatKeyset(manager)
	}
	return nil, ErrNoSuchKey
}

// DropKeys returns the ring without some of its keys. Values sealed by them can then no longer be opened. The primary always
// stays.
func DropKeys(ring []byte, keys []keyring.Fingerprint) ([]byte, error) {
	handle, err := parseKeyset(ring)
	if err != nil {
		return nil, err
	}
	manager := keyset.NewManagerFromHandle(handle)
	for _, f := range fingerprints(handle) {
		if f.id == handle.KeysetInfo().GetPrimaryKeyId() || !slices.Contains(keys, f.of) {
			continue
		}
		if err := manager.Delete(f.id); err != nil {
			return nil, fmt.Errorf("dropping a key: %w", err)
		}
	}
	return formatKeyset(manager)
}

func withNewPrimary(manager *keyset.Manager) ([]byte, error) {
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if err := manager.SetPrimary(id); err != nil {
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
