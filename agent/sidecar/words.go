package sidecar

import (
	"errors"
	"regexp"
	"strings"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

// word is a token of a statement; an operator of several characters is one.
type word struct {
	at    int
	text  string
	glued bool // nothing stands between it and the word before
}

const (
	operatorCharacters = "+-*/<>=~!@#%^&|`?:"
	longestOperator    = 63
)

func operator(text string) bool {
	return len(text) < longestOperator && strings.Trim(text, operatorCharacters) == ""
}

// split splits a statement. What is glued in B'1' and U&"a" stays together.
func split(sql []byte) []word {
	var words []word
	end := 0
	for at, text := range dumpsql.Tokens(sql) {
		w := word{at: at, text: text, glued: at == end && at > 0}
		end = at + len(text)
		if n := len(words) - 1; w.glued && (operator(text) && operator(words[n].text) ||
			literal(text) && !literal(words[n].text) && identifierLike(words[n].text)) {
			words[n].text += text
			continue
		}
		words = append(words, w)
	}
	return words
}

func literal(text string) bool { return text[0] == '\'' }

func identifierLike(text string) bool {
	c := text[0]
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// text joins words as they stood: what was glued is, and between others is one blank.
func text(words []word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && !w.glued {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
	}
	return b.String()
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// identifier returns the name that a word stands for. pg_dump quotes all that are not plain, so keywords, in upper case, are
// none.
func identifier(text string) (string, bool) {
	if !strings.HasPrefix(text, `"`) {
		return text, plainName.MatchString(text)
	}
	return dumpsql.Unquoted(text), len(text) > len(`""`)
}

var errNotUnderstood = errors.New("it is not written as pg_dump writes it")

// cursor reads a statement word by word.
type cursor struct {
	words []word
	at    int
}

func (c *cursor) peek() string {
	if c.at >= len(c.words) {
		return ""
	}
	return c.words[c.at].text
}

// take consumes these keywords or symbols, if they are the next words.
func (c *cursor) take(words ...string) bool {
	if len(c.words)-c.at < len(words) {
		return false
	}
	for i, w := range words {
		if c.words[c.at+i].text != w {
			return false
		}
	}
	c.at += len(words)
	return true
}

// name consumes one name.
func (c *cursor) name() (string, error) {
	name, ok := identifier(c.peek())
	if !ok {
		return "", errNotUnderstood
	}
	c.at++
	return name, nil
}

// role consumes the name of a role, or PUBLIC.
func (c *cursor) role() (string, error) {
	if c.take("PUBLIC") {
		return everybody, nil
	}
	return c.name()
}

// endAfter demands the end of the statement, unless something was wrong before.
func (c *cursor) endAfter(err error) error {
	if err != nil {
		return err
	}
	return c.end()
}

// end demands the end of the statement.
func (c *cursor) end() error {
	if !c.take(";") || c.at != len(c.words) {
		return errNotUnderstood
	}
	return nil
}
