package preview

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// MostRef is the longest ref, in characters.
const MostRef = 200

// CheckRef returns VALIDATION_ERROR for what is no ref: 1-200 characters, none of them a control character. Two refs that
// differ in anything are two refs.
func CheckRef(ref string) error {
	switch n := utf8.RuneCountInString(ref); {
	case !utf8.ValidString(ref):
		return fault.Invalid("ref", "must be valid UTF-8")
	case n < 1 || n > MostRef:
		return fault.Invalid("ref", "must have 1-%d characters", MostRef)
	case strings.ContainsFunc(ref, unicode.IsControl):
		return fault.Invalid("ref", "must not contain control characters")
	}
	return nil
}

var digits = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Name is the name of the database of the n-th preview of a ref. Its digits are 200 bits of a hash: two refs, of whatever
// namespaces, never have the same name.
func Name(namespace id.NamespaceID, ref string, n int) string {
	sum := sha256.Sum256([]byte(string(namespace) + "\n" + strconv.Itoa(n) + "\n" + ref))
	return database.PreviewName + digits.EncodeToString(sum[:])[:database.PreviewDigits]
}

// mostLabel is the longest display name of a database.
const mostLabel = 64

// DisplayName is the label of the database of a ref's preview: as much of the ref as a label may have.
func DisplayName(ref string) string {
	label := []rune("Preview " + ref)
	return strings.TrimSpace(string(label[:min(len(label), mostLabel)]))
}
