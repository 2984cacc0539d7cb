package role

import (
	"strings"
	"unicode"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

// ValidateDisplayName trims and checks a role's label: 1-64 characters, no control characters. Beyond the rule for databases it
// refuses what cannot be seen, since a label must tell roles apart: line and paragraph separators, and format characters but the
// two joiners that scripts and emoji need.
func ValidateDisplayName(s string) (string, error) {
	s, err := database.ValidateDisplayName(s)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(s, unseen) {
		return "", fault.Invalid("displayName", "must not contain control characters")
	}
	if NameKey(s) == "" {
		return "", fault.Invalid("displayName", "must have a character that can be seen")
	}
	return s, nil
}

// NameKey is equal for labels that look alike but for joiners and the width of spaces. It must be unique among the roles of a
// database that are not removed.
func NameKey(s string) string {
	s = strings.Map(func(r rune) rune {
		if joiner(r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func joiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

func unseen(r rune) bool {
	return !joiner(r) && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
