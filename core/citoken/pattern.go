package citoken

import (
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// Pattern matches subjects, such as repo:acme/shop:ref:refs/heads/main. Parts are separated by colons.
//
//   - "*" matches one or more characters, but no colon: it does not reach into the next part.
//   - "**" at the end, after a colon, matches all parts that follow, at least one.
//   - Every other character matches itself; letter case counts.
//
// What comes before the first "*" must name whose the subject is: at least two names, each ended by a colon or a slash, as
// "repo:acme/". So "*", "repo:*" and "repo:acme*", which others could match by the names that they choose, are refused.
type Pattern string

const (
	maxSubject = 255 // of a pattern, and of the subject of a token (OpenID Connect Core, section 2), in bytes
	maxStars   = 8
	rest       = "**"
)

// ParsePattern checks a pattern. VALIDATION_ERROR on "subject".
func ParsePattern(text string) (Pattern, error) {
	first := strings.IndexByte(text, '*')
	body, all := strings.CutSuffix(text, rest)
	switch {
	case !visible(text, maxSubject):
		return "", fault.Invalid("subject", "must have 1-%d characters, all of them printable ASCII", maxSubject)
	case first >= 0 && ended(text[:first]) < 2:
		return "", fault.Invalid("subject",
			`must name whose it is before the first *: two names at least, each ended by : or /, as "repo:acme/"`)
	case all && !strings.HasSuffix(body, ":"), strings.Contains(body, rest):
		return "", fault.Invalid("subject", "must have ** only at its end, after a colon")
	case strings.Count(body, "*") > maxStars:
		return "", fault.Invalid("subject", "must have at most %d of *", maxStars)
	}
	return Pattern(text), nil
}

// ended counts the names that a colon or a slash ends.
func ended(text string) (names int) {
	name := false
	for i := range len(text) {
		switch text[i] {
		case ':', '/':
			if name {
				names++
			}
			name = false
		default:
			name = true
		}
	}
	return names
}

// Matches reports whether the pattern matches a whole subject.
func (p Pattern) Matches(subject string) bool {
	wanted, parts := strings.Split(string(p), ":"), strings.Split(subject, ":")
	last := len(wanted) - 1
	if wanted[last] == rest {
		if len(parts) <= last || strings.Join(parts[last:], ":") == "" {
			return false
		}
		wanted, parts = wanted[:last], parts[:last]
	}
	if len(wanted) != len(parts) {
		return false
	}
	for i, part := range parts {
		if !matches(wanted[i], part) {
			return false
		}
	}
	return true
}

// matches compares one part. The text between two stars is taken at its first place: a later one would leave less for what
// follows.
func matches(wanted, part string) bool {
	pieces := strings.Split(wanted, "*")
	if len(pieces) == 1 {
		return wanted == part
	}
	part, ok := strings.CutPrefix(part, pieces[0])
	if !ok {
		return false
	}
	for _, piece := range pieces[1 : len(pieces)-1] {
		if part == "" {
			return false
		}
		at := strings.Index(part[1:], piece) // one character at least is the star's
		if at < 0 {
			return false
		}
		part = part[1+at+len(piece):]
	}
	end := pieces[len(pieces)-1]
	return len(part) > len(end) && strings.HasSuffix(part, end)
}

// visible reports whether a text has from one to most bytes, all of them printable ASCII.
func visible(text string, most int) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= most
}
