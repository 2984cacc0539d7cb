package role

import (
	"strings"
	"unicode"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

// ValidateDisplayName trims and checks a role's label: 1-64 characters, no control characters. Unlike the rule for databases it
// also refuses invisible characters, because the label must distinguish roles. Joiners and variation selectors are allowed,
// because some scripts and emoji need them.
func ValidateDisplayName(s string) (string, error) {
	s, err := database.ValidateDisplayName(s)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(s, unseen) {
		return "", fault.Invalid("displayName", "must not contain control or invisible characters")
	}
	if NameKey(s) == "" {
		return "", fault.Invalid("displayName", "must have a character that can be seen")
	}
	return s, nil
}

// NameKey is equal for labels that differ only in joiners, variation selectors and the width of spaces. It must be unique among
// the roles of a database that are not removed. Letters that merely look alike remain different, and so do the two encodings of
// an accented letter: the standard library cannot compose them, so hosts pass labels in Unicode's form NFC.
func NameKey(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case shaping(r):
			return -1
		case r == blank:
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// blank is the Braille pattern without dots: Unicode classes it as a symbol, but it looks like a space.
const blank = '\u2800'

// shaping reports whether r only affects how its neighbours are drawn.
func shaping(r rune) bool {
	return r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r)
}

// unseen reports whether r is a line or paragraph separator, a format character, or a letter or mark that is never drawn.
func unseen(r rune) bool {
	return !shaping(r) && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}
