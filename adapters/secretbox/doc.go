// Package secretbox implements ports.SecretBox with Tink: AES-256-GCM with the context as associated data, and a ring of keys,
// one of which, the primary, seals. A sealed value is 33 bytes longer than its plaintext.
//
// The ring is a Tink keyset in JSON, in a file that only its owner may read, or in a text that an environment variable
// holds. A box loaded from a file follows the file. Which key seals is what SealWith says; without that, the ring's own primary.
// To change keys: Stage a new one; when every host has it, have it seal, and Promote it; seal again every stored value that was
// SealedBy another one; then Drop that.
package secretbox
