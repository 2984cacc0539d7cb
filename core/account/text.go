package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
)

// trimmedText checks a label for people: 1 to limit characters after trimming, no control characters.
func trimmedText(field, value string, limit int) (string, error) {
	value = strings.TrimSpace(value)
	switch n := utf8.RuneCountInString(value); {
	case !utf8.ValidString(value):
		return "", fault.Invalid(field, "must be valid UTF-8")
	case n == 0:
		return "", fault.Invalid(field, "must not be empty")
	case n > limit:
		return "", fault.Invalid(field, "must have at most %d characters", limit)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", fault.Invalid(field, "must not contain control characters")
	}
	return value, nil
}

// ValidateName checks a person's name: 1-100 characters, no control characters.
func ValidateName(name string) (string, error) { return trimmedText("name", name, 100) }

// ValidateEmail accepts an address that mail can be sent to: one @, something on both sides, no spaces, control characters
// or characters that mean something in a mail's header, no dot at an end or beside another, at most 254 characters. It
// returns the address in lower case, which is how addresses are compared.
func ValidateEmail(email string) (string, error) {
	email, err := trimmedText("email", email, 254)
	if err != nil {
		return "", err
	}
	local, domain, _ := strings.Cut(email, "@")
	if !mailPart(local) || !mailPart(domain) {
		return "", fault.Invalid("email", "must be a mail address")
	}
	return strings.ToLower(email), nil
}

// mailPart checks what stands on one side of the @: words with single dots between them.
func mailPart(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.ContainsAny(word, `@()<>[]:;,\"`) || strings.ContainsFunc(word, unicode.IsSpace) {
			return false
		}
	}
	return true
}
