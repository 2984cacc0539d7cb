package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
)

// ValidateName checks a person's name: 1-100 characters, none of them invisible. One that turns the direction of the text, say,
// would make a person pass for another where names are shown.
func ValidateName(name string) (string, error) {
	name, err := fault.Label("name", name, 1, 100)
	if err == nil && strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return "", fault.Invalid("name", "must not contain invisible characters")
	}
	return name, err
}

// maxEmail is the longest address, in bytes, that mail servers pass on (RFC 5321, 4.5.3.1.3).
const maxEmail = 254

// ValidateEmail accepts an address that mail can be sent to: one @, something on both sides, no spaces, control or invisible
// characters or ones with a meaning in mail headers, no leading, trailing or repeated dots, at most 254 bytes. It is a bare
// address, without a name beside it. It returns the address in lower case; addresses are compared in that form.
func ValidateEmail(email string) (string, error) {
	email, err := fault.Label("email", email, 1, maxEmail)
	if err != nil {
		return "", err
	}
	email = strings.ToLower(email)
	local, domain, _ := strings.Cut(email, "@")
	switch {
	case !mailPart(local) || !mailPart(domain):
		return "", fault.Invalid("email", "must be a mail address")
	case len(email) > maxEmail:
		return "", fault.Invalid("email", "must have at most %d bytes", maxEmail)
	}
	return email, nil
}

// Bounds of a password, in characters. The upper one keeps the work of hashing small.
const (
	minPassword = 8
	maxPassword = 200
)

// ValidatePassword checks the length of a chosen password. Every character counts, spaces too.
func ValidatePassword(password string) error {
	if n := utf8.RuneCountInString(password); !utf8.ValidString(password) || n < minPassword || n > maxPassword {
		return fault.Invalid("password", "must have %d-%d characters", minPassword, maxPassword)
	}
	return nil
}

// mailPart checks one side of the @: words separated by single dots.
func mailPart(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.ContainsAny(word, `@()<>[]:;,\"`) || strings.ContainsFunc(word, unseen) {
			return false
		}
	}
	return true
}

// unseen reports whether a character is a space or cannot be seen, such as one that turns the direction of the text.
func unseen(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }
