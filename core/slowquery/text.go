package slowquery

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/ascii"
)

const (
	// MostRead is how many characters of a text are looked at, from its beginning.
	MostRead = 4000
	// MostShown is how many are shown of what is left.
	MostShown = 2000
)

// cut ends what is not shown to its end.
const cut = "…"

// shown are the statements that are shown, by their first word, and by their second where some are listed. All others are hidden,
// those too that nobody has thought of: utility statements carry passwords, keys and connection strings, also outside of
// constants.
var shown = map[string][]string{
	"select": nil, "insert": nil, "update": nil, "delete": nil, "merge": nil, "with": nil, "values": nil, "table": nil,
	"call": nil, "copy": nil, "declare": nil, "fetch": nil, "explain": nil, "commit": nil, "lock": nil, "truncate": nil,
	"analyze": nil, "vacuum": nil, "cluster": nil, "reindex": nil, "refresh": nil,
	"create": {"index", "unique", "table", "temp", "temporary", "unlogged", "local", "global", "materialized"},
	"alter":  {"table", "index", "materialized"},
}

// Text makes of a statement, as PostgreSQL keeps it, what is shown of it: one line without comments, in which every constant is a
// question mark. PostgreSQL has replaced most constants by parameters, but not those of all utility statements, and none of a
// statement that it had forgotten, for room, before its execution ended. ok is false for a statement that is not shown.
func Text(kept string) (text string, ok bool) {
	kept, more := first(strings.ToValidUTF8(kept, string(utf8.RuneError)), MostRead)
	s := scan{rest: kept}
	for s.rest != "" && !s.lost {
		s.next()
	}
	if !s.isShown() {
		return "", false
	}
	text, longer := first(s.out.String(), MostShown)
	if more || longer || s.lost {
		text += cut
	}
	return text, true
}

// first are the first characters of a text, and whether there are more.
func first(text string, most int) (string, bool) {
	for i := range text {
		if most == 0 {
			return text[:i], true
		}
		most--
	}
	return text, false
}

// scan is a statement of which rest is still to be read.
type scan struct {
	rest  string
	out   strings.Builder
	space bool     // there was space, or a comment, since the last token
	words []string // the first two, in lower case
	begun bool     // something stands before the first word, other than parentheses
	lost  bool     // nobody can tell what the rest is
}

func (s *scan) isShown() bool {
	if len(s.words) == 0 {
		return false
	}
	second, listed := shown[s.words[0]]
	return listed && (second == nil || len(s.words) > 1 && slices.Contains(second, s.words[1]))
}

// next reads a token, space or a comment.
func (s *scan) next() {
	c := s.rest[0]
	switch {
	case strings.HasPrefix(s.rest, "--"):
		s.skip(strings.IndexAny(s.rest, "\n\r"))
	case strings.HasPrefix(s.rest, "/*"):
		s.skip(commentLength(s.rest))
	case c == '\'':
		s.constant(quoted(s.rest, '\'', false))
	case c == '"':
		s.begun = true
		s.keep(quoted(s.rest, '"', false))
	case c == '$':
		s.dollar()
	case isDigit(c), c == '.' && len(s.rest) > 1 && isDigit(s.rest[1]):
		s.constant(numberLength(s.rest))
	case startsName(c):
		s.name()
	default:
		r, n := utf8.DecodeRuneInString(s.rest)
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			s.skip(n)
			return
		}
		s.begun = s.begun || c != '('
		s.keep(n)
	}
}

// skip leaves something out: all that is left where n is below 0.
func (s *scan) skip(n int) {
	if n < 0 {
		n = len(s.rest)
	}
	s.rest, s.space = s.rest[n:], true
}

// keep shows something as it is, but for what is no character that can be seen.
func (s *scan) keep(n int) {
	if n < 0 {
		n = len(s.rest)
	}
	s.write(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s.rest[:n]))
	s.rest = s.rest[n:]
}

// constant shows that there is one. Where it does not end, or nobody knows where it does, that is all that is shown.
func (s *scan) constant(n int) {
	s.begun = true
	s.write("?")
	if s.lost = n < 0; !s.lost {
		s.rest = s.rest[n:]
	}
}

func (s *scan) write(token string) {
	if s.space && s.out.Len() > 0 {
		s.out.WriteByte(' ')
	}
	s.space = false
	s.out.WriteString(token)
}

// name reads a name, a keyword, or a constant or quoted name with a prefix.
func (s *scan) name() {
	n := nameLength(s.rest)
	word, rest := ascii.Lower(s.rest[:n]), s.rest[n:]
	switch {
	case strings.HasPrefix(rest, "'") && slices.Contains([]string{"e", "b", "x", "n"}, word):
		s.rest = rest
		s.constant(quoted(rest, '\'', word == "e"))
		return
	case word == "u" && strings.HasPrefix(rest, "&'"):
		s.rest = rest[1:]
		s.constant(quoted(s.rest, '\'', false))
		return
	}
	if len(s.words) < 2 && !s.begun {
		s.words = append(s.words, word)
	}
	s.keep(n)
}

// dollar reads a parameter, a constant between dollars, or a dollar that means nothing.
func (s *scan) dollar() {
	n := 1
	if len(s.rest) > 1 && isDigit(s.rest[1]) {
		for n < len(s.rest) && isDigit(s.rest[n]) {
			n++
		}
		s.keep(n)
		return
	}
	for n < len(s.rest) && s.rest[n] != '$' && (startsName(s.rest[n]) || isDigit(s.rest[n])) {
		n++
	}
	if n == len(s.rest) || s.rest[n] != '$' {
		s.keep(1)
		return
	}
	tag := s.rest[:n+1]
	end := strings.Index(s.rest[len(tag):], tag)
	if end >= 0 {
		end += 2 * len(tag)
	}
	s.constant(end)
}

// quoted is how long a text between these marks is; below 0 where it does not end, or where that depends on a setting of the
// session, which is not known: whether a backslash before a mark is one of the text.
func quoted(text string, mark byte, escapes bool) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && escapes:
			i++
		case text[i] != mark:
		case mark == '\'' && !escapes && text[i-1] == '\\':
			return -1
		case i+1 < len(text) && text[i+1] == mark:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// commentLength is how long a comment is, which may hold others; below 0 where it does not end.
func commentLength(text string) int {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		}
	}
	return -1
}

// numberLength is how long a number is, with whatever follows it without a space.
func numberLength(text string) int {
	n := 0
	for n < len(text) && (isDigit(text[n]) || startsName(text[n]) || text[n] == '.' ||
		(text[n] == '+' || text[n] == '-') && (text[n-1] == 'e' || text[n-1] == 'E')) {
		n++
	}
	return n
}

func nameLength(text string) int {
	n := 0
	for n < len(text) && (startsName(text[n]) || isDigit(text[n]) || text[n] == '$') {
		n++
	}
	return n
}

func startsName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
