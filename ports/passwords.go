package ports

import "github.com/pgherd/pgherd/core/fault"

// Passwords makes what is stored of the passwords of people, and compares with it. Both take tens of milliseconds and megabytes,
// on purpose: callers bound how many run at once.
type Passwords interface {
	// Hash returns what is stored of a password: a text that names its algorithm and all parameters. A random salt keeps equal
	// passwords from having equal hashes.
	Hash(password string, salt [16]byte) (string, error)
	// Matches reports whether a password is the one that was hashed.
	Matches(hash, password string) bool
}

// NoPasswords is for an installation without passwords: new people cannot accept invitations.
type NoPasswords struct{}

// Hash refuses with FEATURE_NOT_AVAILABLE.
func (NoPasswords) Hash(string, [16]byte) (string, error) {
	return "", fault.New(fault.FeatureNotAvailable, "this installation has no passwords of people")
}

// Matches is always false.
func (NoPasswords) Matches(string, string) bool { return false }
