package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/ascii"
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

// Bounds of an address and of what stands before its @, in characters: more than that no mail server has to take (RFC 5321).
const (
	maxEmail = 254
	maxLocal = 64
)

// ValidateEmail accepts an address that mail can be sent to: printable ASCII with one @, something on both sides, no characters
// with a meaning in mail headers, no leading, trailing or repeated dots. It is a bare address, without a name beside it. Blanks
// around it are ignored. It returns the address in lower case: this form is stored, and is the only one that addresses are
// compared in. VALIDATION_ERROR on "email".
func ValidateEmail(email string) (string, error) {
	email = strings.Trim(email, " ")
	local, domain, _ := strings.Cut(email, "@")
	switch {
	case !ascii.Visible(email):
		return "", fault.Invalid("email", "must have printable ASCII characters only; write an international domain as xn--...")
	case !mailPart(local) || !mailPart(domain):
		return "", ErrNoAddress()
	case len(email) > maxEmail || len(local) > maxLocal:
		return "", fault.Invalid("email", "must have at most %d characters, %d of them before the @", maxEmail, maxLocal)
	}
	return ascii.Lower(email), nil
}

// ErrNoAddress is VALIDATION_ERROR on "email".
func ErrNoAddress() error { return fault.Invalid("email", "must be a mail address") }

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
		if word == "" || strings.ContainsAny(word, `@()<>[]:;,\"`) {
			return false
		}
	}
	return true
}
