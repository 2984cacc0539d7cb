package webhook

import "github.com/pgherd/pgherd/core/id"

// SecretPrefix begins every signing secret, and is part of the key that signs.
const SecretPrefix = "whsec_"

// SecretCharacters is how many random base62 characters a secret has: over 190 bits.
const SecretCharacters = 32

// NewSecret builds a signing secret from SecretCharacters random base62 characters.
func NewSecret(random string) string { return SecretPrefix + random[:SecretCharacters] }

// SecretContext binds a stored secret to its endpoint.
func SecretContext(w id.WebhookID) string { return "webhook/" + string(w) }
