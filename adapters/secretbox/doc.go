// Package secretbox implements ports.SecretBox with Tink: AES-256-GCM with the context as associated data, and a ring of keys,
// one of which, the primary, seals. A sealed value is 33 bytes longer than its plaintext.
//
// The ring is a Tink keyset in JSON, in a file that only its owner may read, or in a text that an environment variable
// holds. To change keys: Rotate (a new primary; the old keys stay for reading), seal again every stored value for which
// NeedsReseal is true, then Prune. A box loaded from a file follows the file, so that running hosts use the new primary
// with the next value that they seal; hosts that were given a text need a restart between the steps.
package secretbox
