// Package credential computes the verifier that PostgreSQL stores for a password, so that the password itself is never sent to
// the server.
package credential

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Iterations is what PostgreSQL itself uses for SCRAM-SHA-256.
const Iterations = 4096

// PasswordLength gives a generated password, of letters and digits, over 190 bits.
const PasswordLength = 32

// maxIterations bounds the work that a stored verifier can demand of Matches.
const maxIterations = 10_000_000

const scheme = "SCRAM-SHA-256"

var encoding = base64.StdEncoding

// Verifier returns the SCRAM-SHA-256 verifier of a password, as CREATE ROLE ... PASSWORD takes it and pg_authid stores it:
// SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>. It equals the server's own result for the same salt. The password
// must be ASCII (all generated ones are): SASLprep, which changes nothing in ASCII, is not applied. iterations is at least 1.
func Verifier(password string, salt [16]byte, iterations int) string {
	stored, server := keys(password, salt[:], iterations)
	return fmt.Sprintf("%s$%d:%s$%s:%s", scheme, iterations,
		encoding.EncodeToString(salt[:]), encoding.EncodeToString(stored), encoding.EncodeToString(server))
}

// Matches reports whether the verifier was made from the password. A malformed verifier matches no password.
func Matches(verifier, password string) bool {
	v, ok := parse(verifier)
	if !ok {
		return false
	}
	stored, server := keys(password, v.salt, v.iterations)
	sameStored := hmac.Equal(stored, v.stored)
	sameServer := hmac.Equal(server, v.server)
	return sameStored && sameServer
}

// keys are StoredKey and ServerKey of RFC 5802, section 3.
func keys(password string, salt []byte, iterations int) (stored, server []byte) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		panic("credential: " + err.Error()) // only a wrong length or iteration count, both fixed by the callers
	}
	client := sha256.Sum256(sign(salted, "Client Key"))
	return client[:], sign(salted, "Server Key")
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

type verifierParts struct {
	iterations           int
	salt, stored, server []byte
}

func parse(verifier string) (verifierParts, bool) {
	parts := strings.Split(verifier, "$")
	if len(parts) != 3 || parts[0] != scheme {
		return verifierParts{}, false
	}
	count, salt, ok1 := strings.Cut(parts[1], ":")
	stored, server, ok2 := strings.Cut(parts[2], ":")
	n, err := strconv.Atoi(count)
	if !ok1 || !ok2 || err != nil || n < 1 || n > maxIterations {
		return verifierParts{}, false
	}
	v := verifierParts{iterations: n}
	for _, field := range []struct {
		to   *[]byte
		text string
	}{{&v.salt, salt}, {&v.stored, stored}, {&v.server, server}} {
		if *field.to, err = encoding.DecodeString(field.text); err != nil {
			return verifierParts{}, false
		}
	}
	return v, len(v.stored) == sha256.Size && len(v.server) == sha256.Size
}
