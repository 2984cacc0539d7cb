package dumpsql

import (
	"bytes"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// heading remembers what the first words of a statement are.
type heading struct {
	words         []string // up to maxHeading of them, in lower case; a quoted name is ""
	from          bool     // the last word was FROM, outside parentheses
	copyFromStdin bool
}

const maxHeading = 4

// word consumes a name or keyword, or the prefix of an E string with the string.
func (s *scan) word() error {
	n := 1
	for {
		c, ok := s.peek(n)
		if !ok || !identPart(c) {
			break
		}
		if n++; s.i+n >= s.r.limits.Statement {
			return ErrStatementTooLong
		}
	}
	text := s.r.buf[s.r.start+s.i : s.r.start+s.i+n]
	escapes := n == 1 && (text[0] == 'e' || text[0] == 'E')
	if c, ok := s.peek(n); escapes && ok && c == '\'' {
		s.endWord(nil)
		s.i++
		s.escapes, s.lineSeen = true, false
		return s.until('\'', true)
	}
	if s.r.err != nil {
		return s.r.err
	}
	s.endWord(s.r.buf[s.r.start+s.i : s.r.start+s.i+n])
	s.i += n
	return nil
}

// endWord records a word; nil stands for a quoted name or a literal, which is never a keyword.
func (s *scan) endWord(text []byte) {
	keyword := ""
	if !s.dotted && len(text) <= len("procedure") {
		keyword = ascii.Lower(string(text))
	}
	s.dotted = false
	s.heading.note(keyword, s.parens)
	s.depth(keyword)
}

func (h *heading) note(keyword string, parens int) {
	if len(h.words) > 0 && h.words[0] == "copy" && parens == 0 {
		h.copyFromStdin = h.copyFromStdin || h.from && keyword == "stdin"
		h.from = keyword == "from"
	}
	if len(h.words) < maxHeading {
		h.words = append(h.words, keyword)
	}
}

// depth counts the depth of a BEGIN ATOMIC body: CASE opens and END closes within it.
func (s *scan) depth(keyword string) {
	wasBegin := s.begin
	s.begin = false
	if s.parens > 0 || !s.heading.makesRoutine() {
		return
	}
	switch keyword {
	case "begin":
		s.begin = s.atomic == 0
	case "atomic":
		if wasBegin {
			s.atomic = 1
		}
	case "case":
		if s.atomic > 0 {
			s.atomic++
		}
	case "end":
		s.atomic = max(0, s.atomic-1)
	}
}

// makesRoutine recognises CREATE [OR REPLACE] FUNCTION and PROCEDURE.
func (h *heading) makesRoutine() bool {
	if len(h.words) < 2 || h.words[0] != "create" {
		return false
	}
	kind := h.words[1]
	if kind == "or" && len(h.words) == maxHeading {
		kind = h.words[3]
	}
	return kind == "function" || kind == "procedure"
}

// backslash consumes a backslash command. Only \restrict and \unrestrict are allowed, at the beginning of a line and of a
// statement, each with the same key: psql executes the others, and so no dump of ours and no upload may hold them.
func (s *scan) backslash() (done bool, err error) {
	if s.i != s.body || !s.lineStart() {
		return false, ErrBackslash
	}
	n := 0
	for {
		c, ok := s.peek(n)
		if !ok || c == '\n' {
			break
		}
		if n++; n > maxMeta {
			return false, ErrBackslash
		}
	}
	if s.r.err != nil {
		return false, s.r.err
	}
	command := string(bytes.TrimRight(s.r.buf[s.r.start+s.i:s.r.start+s.i+n], "\r"))
	s.i += n
	s.meta = true
	return true, s.r.meta(command)
}

const maxMeta = 128

func (s *scan) lineStart() bool {
	if s.i == 0 {
		return !s.r.midText
	}
	return s.r.buf[s.r.start+s.i-1] == '\n'
}

func (r *Reader) meta(command string) error {
	verb, key, _ := strings.Cut(command, " ")
	if !plainKey(key) {
		return ErrBackslash
	}
	switch verb {
	case `\restrict`:
		if r.restrictKey != "" {
			return ErrRestrictKey
		}
		r.restrictKey = key
	case `\unrestrict`:
		if r.restrictKey != key {
			return ErrRestrictKey
		}
		r.restrictKey = ""
	default:
		return ErrBackslash
	}
	return nil
}

func plainKey(key string) bool {
	for _, c := range []byte(key) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return key != ""
}
