// Package passwords hashes the passwords of people with Argon2id.
package passwords

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The parameters of new hashes, OWASP's: 19 MiB and two passes take about 70 ms. Each hash names those that it was made with, so
// other ones can be chosen without making the old hashes worthless.
const (
	memory  = 19 << 10 // KiB
	passes  = 2
	threads = 1
	length  = 32
)

// Most that a stored hash may ask for, so that a broken one does not take the process's memory.
const (
	mostMemory = 1 << 20 // KiB
	mostPasses = 100
)

// Hasher implements ports.Passwords.
type Hasher struct{}

// Hash returns the hash in PHC's form: $argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>.
func (Hasher) Hash(password string, salt [16]byte) (string, error) {
	sum := argon2.IDKey([]byte(password), salt[:], passes, memory, threads, length)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, threads,
		base64.RawStdEncoding.EncodeToString(salt[:]), base64.RawStdEncoding.EncodeToString(sum)), nil
}

// Matches hashes the password again, with the parameters of the hash, and compares in constant time. Nothing matches a text that
// is no hash.
func (Hasher) Matches(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return false
	}
	var m, t uint32
	var p uint8
	_, malformed := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &m, &t, &p)
	salt, badSalt := base64.RawStdEncoding.DecodeString(parts[4])
	sum, badSum := base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case malformed != nil || badSalt != nil || badSum != nil || len(salt) == 0 || len(sum) < length:
		return false
	case m > mostMemory || t == 0 || t > mostPasses || p == 0:
		return false
	}
	again := argon2.IDKey([]byte(password), salt, t, m, p, uint32(len(sum)))
	return subtle.ConstantTimeCompare(sum, again) == 1
}
