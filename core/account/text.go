package account

import (
	"strings"
	"unicode"

	"github.com/pgherd/pgherd/core/fault"
)

// ValidateName checks a person's name: 1-100 characters, no control characters.
func ValidateName(name string) (string, error) { return fault.Label("name", name, 1, 100) }

// ValidateEmail accepts an address that mail can be sent to: one @, something on both sides, no spaces, control characters or
// characters with a meaning in mail headers, no leading, trailing or repeated dots, at most 254 characters. It returns the
// address in lower case; addresses are compared in that form.
func ValidateEmail(email string) (string, error) {
	email, err := fault.Label("email", email, 1, 254)
	if err != nil {
		return "", err
	}
	local, domain, _ := strings.Cut(email, "@")
	if !mailPart(local) || !mailPart(domain) {
		return "", fault.Invalid("email", "must be a mail address")
	}
	return strings.ToLower(email), nil
}

// mailPart checks one side of the @: words separated by single dots.
func mailPart(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.ContainsAny(word, `@()<>[]:;,\"`) || strings.ContainsFunc(word, unicode.IsSpace) {
			return false
		}
	}
	return true
}
