package recovery

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Until is what the answer of a query is compared with.
type Until struct {
	relation string   // one of relations
	number   *big.Rat // nil: text
	text     string
}

// relations are those that are written so, the longer before what they begin with.
var relations = []string{"<=", "<>", "<", "=", ">=", ">"}

// numeral is a number as SQL and PostgreSQL write it.
var numeral = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`)

// mostUntil is how long a comparison may be, in bytes.
const mostUntil = 1 << 10

// ParseUntil reads one of < <= = <> >= > and a number, or a text in single quotes, two of which inside it are one.
func ParseUntil(text string) (u Until, err error) {
	rest := strings.TrimSpace(text)
	for _, r := range relations {
		if after, has := strings.CutPrefix(rest, r); has {
			u.relation, rest = r, strings.TrimSpace(after)
			break
		}
	}
	switch {
	case len(text) > mostUntil || !utf8.ValidString(text):
		return u, errors.New("must be text of at most 1024 bytes")
	case u.relation == "":
		return u, errors.New("must begin with one of < <= = <> >= >")
	case numeral.MatchString(rest):
		u.number, _ = new(big.Rat).SetString(rest) // what the pattern admits is one
		return u, nil
	case len(rest) < 2 || rest[0] != '\'' || rest[len(rest)-1] != '\'':
		return u, errors.New("must compare with a number, or with a text in single quotes")
	}
	inside := rest[1 : len(rest)-1]
	if strings.Count(inside, "'") != 2*strings.Count(inside, "''") {
		return u, errors.New("has a single quote inside its text that is not doubled")
	}
	u.text = strings.ReplaceAll(inside, "''", "'")
	return u, nil
}

// Holds reports whether an answer fulfils the comparison; nil is NULL, which fulfils none. Texts are compared byte by byte. What
// is no number differs from every number, and is neither less nor more.
func (u Until) Holds(answer *string) bool {
	switch {
	case answer == nil:
		return false
	case u.number == nil:
		return u.is(strings.Compare(*answer, u.text))
	case !numeral.MatchString(*answer):
		return u.relation == "<>"
	}
	n, _ := new(big.Rat).SetString(*answer) // see ParseUntil
	return u.is(n.Cmp(u.number))
}

// is reports whether the relation has two values in an order.
func (u Until) is(order int) bool {
	switch u.relation {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case "=":
		return order == 0
	case "<>":
		return order != 0
	case ">=":
		return order >= 0
	}
	return order > 0
}
