package ports

import "context"

// SealedValues iterates over every encrypted value of the store, so that a new key can replace an old one.
type SealedValues interface {
	// Next returns up to limit values after the given Ref, in the order of Ref; the empty Ref is before the first. It returns none
	// at the end. A value that moves to another row during the walk, as the password of a completed rotation does, moves on to a
	// later Ref.
	Next(ctx context.Context, after string, limit int) ([]SealedValue, error)
	// Replace stores new bytes if the stored ones are still those of v, and changes nothing otherwise. For roles and their changes
	// it waits for the database's lock, because its holder may write back what it has read.
	Replace(ctx context.Context, v SealedValue, sealed []byte) error
}

// SealedValue is one encrypted value. Ref names its row ("archive-key/<server>", "backup-key/<database>", "certificate-key/<id>",
// "change/<id>" of a pending rotation, "factor/<user>", "login/<database>/<login>", "mail/<id>", "operation-input/<id>",
// "operation-result/<id>", "role/<id>", "server/<id>", "webhook/<id>"), Context is what it is bound to.
type SealedValue struct {
	Ref     string
	Context string
	Sealed  []byte
}
