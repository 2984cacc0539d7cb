package ports

import "context"

// Vault walks over every encrypted value of the store, so that a new key can take the place of an old one.
type Vault interface {
	// Next returns up to limit values in the order of Ref, those after the given Ref; the empty Ref begins.
	Next(ctx context.Context, after string, limit int) ([]SealedValue, error)
	// Replace stores new bytes where the stored ones still are those of v, and changes nothing otherwise.
	Replace(ctx context.Context, v SealedValue, sealed []byte) error
}

// SealedValue is one encrypted value. Ref names its row ("login/<database>/<login>", "server/<id>", "webhook/<id>"), Context is
// what it is bound to.
type SealedValue struct {
	Ref     string
	Context string
	Sealed  []byte
}
