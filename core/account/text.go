package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
)

// trimmedText trims and checks a human-readable label: 1 to limit characters, no control characters.
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

// ValidateEmail accepts an address that mail can be sent to: one @, something on both sides, no spaces, control characters or
// characters with a meaning in mail headers, no leading, trailing or repeated dots, at most 254 characters. It returns the
// address in lower case; addresses are compared in that form.
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

// mailPart checks one side of the @: words separated by single dots.
func mailPart(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.ContainsAny(word, `@()<>[]:;,\"`) || strings.ContainsFunc(word, unicode.IsSpace) {
			return false
		}
	}
	return true
}
