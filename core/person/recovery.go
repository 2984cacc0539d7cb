package person

import (
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/token"
)

// Recovery codes take the place of a lost authenticator app, each once.
const (
	// RecoveryCodes is how many a person has after asking for new ones.
	RecoveryCodes = 10
	// RecoveryCharacters is how many random base62 characters one has: over 89 bits, so that its hash tells nothing.
	RecoveryCharacters = 15

	group = 5
)

// RecoveryText is a code as it is shown, in groups of characters.
func RecoveryText(random string) string {
	return random[:group] + "-" + random[group:2*group] + "-" + random[2*group:]
}

// ParseRecovery reads a code as it is typed, with or without what separates the groups; false for a text that is none.
func ParseRecovery(text string) (token.Hash, bool) {
	text = strings.NewReplacer("-", "", " ", "").Replace(text)
	if len(text) != RecoveryCharacters || !ascii.Base62(text) {
		return token.Hash{}, false
	}
	return token.Of(text), true
}
