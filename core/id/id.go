// Package id holds the typed identifiers of the service. It parses and formats them; generating new ones needs the Entropy
// port.
package id

import (
	"encoding/hex"
	"errors"
)

// AccountID and the types below are UUIDs in canonical lower-case form; separate types keep them from being confused.
type (
	AccountID        string
	UserID           string
	DatabaseID       string
	OperationID      string
	AllowlistEntryID string
	MembershipID     string
	InvitationID     string
	MailID           string
	RoleID           string
	WebhookID        string
	DeliveryID       string
	EventID          string
	NamespaceID      string
	ServerID         string
	AuditID          string
	CertificateKeyID string
	UploadID         string
	TrustID          string
	RingHostID       string
	InstallationID   string
	SessionID        string
	PasskeyID        string
	DrillID          string
)

// KeyID is the visible part of an API key: 8 base62 characters.
type KeyID string

// ErrMalformed is returned for a text that is not a UUID in canonical lower-case form.
var ErrMalformed = errors.New("not a lowercase UUID")

// Parse accepts exactly the canonical form: 36 characters, lower case, hyphens at 8, 13, 18 and 23.
func Parse[T ~string](s string) (T, error) {
	if !canonical(s) {
		return "", ErrMalformed
	}
	return T(s), nil
}

func canonical(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// FromBytes formats 16 random bytes as a version 4 UUID.
func FromBytes[T ~string](b [16]byte) T {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return T(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// Compact returns the 32 hexadecimal digits without hyphens, as they stand in the names of logins.
func Compact[T ~string](v T) string {
	s := string(v)
	if len(s) != 36 {
		return s
	}
	return s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
}
