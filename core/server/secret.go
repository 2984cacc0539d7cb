package server

import (
	"errors"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// A shared secret is what a control plane shows an agent with each request. While one is exchanged for another, the agent takes
// two: the control plane uses the one or the other meanwhile.

// secretBits is what a shared secret has to withstand.
const secretBits = 128

// The least variety of a shared secret: fewer different characters are no random ones.
const leastVariety = 8

// What is wrong, and what to do about it.
const (
	howToMake = "make one with: openssl rand -hex 32"
	tooShort  = "the agent's secret is too short: it must have 128 random bits, as in 32 hex digits or 22 characters of base64; " +
		howToMake
	notRandom  = "the agent's secret has too little variety to be random; " + howToMake
	notASecret = "the agent's secret must be printable ASCII without spaces; " + howToMake
)

// CheckSecret refuses what cannot have 128 random bits. Its errors repeat nothing of the secret.
func CheckSecret(secret string) error {
	different := map[rune]bool{}
	for _, c := range secret {
		different[c] = true
	}
	switch {
	case !ascii.Visible(secret):
		return errors.New(notASecret)
	case len(secret) < leastLength(secret):
		return errors.New(tooShort)
	case len(different) < leastVariety, strings.Contains((secret + secret)[1:2*len(secret)-1], secret):
		return errors.New(notRandom)
	}
	return nil
}

// leastLength is how many random characters of a secret's alphabet have so many bits.
func leastLength(secret string) int {
	only := func(alphabet string) bool { return strings.Trim(secret, alphabet) == "" }
	const digits, lower, upper = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case only(digits):
		return 39
	case only(digits + "abcdef"), only(digits + "ABCDEF"):
		return secretBits / 4
	case only(digits + lower), only(digits + upper):
		return 26 // base32
	}
	return 22 // base64
}

// mostSecrets are the one in use and the one before it.
const mostSecrets = 2

// ParseSecrets reads what an agent takes as its shared secret: one a line, the newest first, and two at most. Each must pass
// CheckSecret.
func ParseSecrets(text string) ([]string, error) {
	list := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' })
	switch {
	case len(list) == 0:
		return nil, errors.New("there is no secret; " + howToMake)
	case len(list) > mostSecrets:
		return nil, errors.New("there are more than two secrets: the newest, and below it the former one")
	}
	for _, secret := range list {
		if err := CheckSecret(secret); err != nil {
			return nil, err
		}
	}
	return list, nil
}
