package dumpsql

import (
	"bytes"
	"errors"
	"io"
)

var errAfterCopy = errors.New("text after COPY ... FROM stdin on its line")

// scan walks over one statement. Offsets count from the reader's start. Strings, comments and statements end as in PostgreSQL's
// own lexer; semicolons within parentheses or a BEGIN ATOMIC body are treated as in psql.
type scan struct {
	r    *Reader
	i    int
	body int // where the statement begins
	seen bool
	meta bool // it is a backslash command

	parens  int
	atomic  int  // depth of BEGIN ATOMIC and of CASE within
	begin   bool // the last word was BEGIN
	dotted  bool // the last character was a dot, so that a word is no keyword
	heading heading

	escapes  bool // the last token was an E string, which a quote after a line end continues
	lineSeen bool // ... and a line end was seen since
}

// statement scans to the end of the statement and returns it.
func (s *scan) statement() (Item, error) {
	for {
		c, ok := s.peek(0)
		if !ok {
			return s.atEnd()
		}
		if s.i >= s.r.limits.Statement {
			return Item{}, s.located(ErrStatementTooLong)
		}
		if !s.seen && !s.blank(c) {
			s.seen, s.body = true, s.i
		}
		done, err := s.token(c)
		if err != nil {
			return Item{}, s.located(err)
		}
		if done {
			return s.finish()
		}
	}
}

// located says where a statement cannot be read: at its beginning, or where the backslash is.
func (s *scan) located(err error) error {
	at := s.body
	if errors.Is(err, ErrBackslash) {
		at = s.i
	}
	return &SyntaxError{Line: s.r.line + int64(bytes.Count(s.r.buf[s.r.start:s.r.start+at], newline)), Err: err}
}

func (s *scan) peek(ahead int) (byte, bool) { return s.r.at(s.i + ahead) }

// blank reports whether c starts white space or a comment.
func (s *scan) blank(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '\f', '\v':
		return true
	case '-', '/':
		return s.comment(c)
	default:
		return false
	}
}

func (s *scan) comment(c byte) bool {
	next, ok := s.peek(1)
	return ok && (c == '-' && next == '-' || c == '/' && next == '*')
}

// atEnd decides what the end of the dump means: nothing left, blanks left, or a statement cut off.
func (s *scan) atEnd() (Item, error) {
	switch {
	case s.r.err != nil:
		return Item{}, s.r.err
	case s.seen:
		return Item{}, s.located(ErrUnterminated)
	case s.i == 0 && s.r.restrictKey != "":
		return Item{}, ErrRestrictKey
	case s.i == 0:
		return Item{}, io.EOF
	default:
		return s.r.take(Trailer, s.i, s.i), nil
	}
}

// token consumes one token that starts with c; true when the statement is complete.
func (s *scan) token(c byte) (done bool, err error) {
	switch {
	case c == '\'':
		return false, s.quote()
	case s.blank(c):
		return false, s.space(c)
	}
	s.escapes = false
	switch {
	case c == '"':
		s.endWord(nil)
		return false, s.until('"', false)
	case c == '$':
		return false, s.dollar()
	case identStart(c):
		return false, s.word()
	case c >= '0' && c <= '9':
		return false, s.number()
	case c == '\\':
		return s.backslash()
	case c == 0:
		return false, ErrZeroByte
	default:
		return s.symbol(c), nil
	}
}

// symbol consumes one character that is a token, or part of an operator.
func (s *scan) symbol(c byte) (done bool) {
	s.begin, s.dotted = false, c == '.'
	s.i++
	switch c {
	case '(':
		s.parens++
	case ')':
		s.parens = max(0, s.parens-1)
	case ';':
		return s.parens == 0 && s.atomic == 0
	}
	return false
}

// space consumes one character of white space, or a comment.
func (s *scan) space(c byte) error {
	switch c {
	case '-':
		return s.lineComment()
	case '/':
		s.escapes = false
		return s.blockComment()
	case '\n', '\r':
		s.lineSeen = true
	}
	s.i++
	return nil
}

func (s *scan) lineComment() error {
	for {
		rest := s.r.buf[s.r.start+s.i : s.r.end]
		if n := bytes.IndexAny(rest, "\n\r"); n >= 0 {
			s.i += n
			return s.noZero(rest[:n])
		}
		s.i += len(rest)
		if err := s.more(rest); err != nil || s.r.eofAt(s.i) {
			return err
		}
	}
}

func (s *scan) blockComment() error {
	depth := 0
	for {
		c, ok := s.peek(0)
		if !ok {
			return s.r.unterminated()
		}
		next, _ := s.peek(1)
		switch {
		case c == '/' && next == '*':
			depth++
			s.i++
		case c == '*' && next == '/':
			depth--
			s.i++
		case c == 0:
			return ErrZeroByte
		}
		s.i++
		if depth == 0 {
			return nil
		}
		if s.i >= s.r.limits.Statement {
			return ErrStatementTooLong
		}
	}
}

// number consumes digits and the letters attached to them, so that 1e5 contains no word.
func (s *scan) number() error {
	s.begin, s.dotted = false, false
	for {
		c, ok := s.peek(0)
		if !ok || (c < '0' || c > '9') && !identStart(c) {
			return s.bounded()
		}
		s.i++
		if s.i >= s.r.limits.Statement {
			return ErrStatementTooLong
		}
	}
}

func (s *scan) finish() (Item, error) {
	switch {
	case s.meta:
		return s.r.take(Meta, s.i, s.body), nil
	case s.heading.copyFromStdin:
		return s.copyStart()
	}
	return s.r.take(Statement, s.i, s.body), nil
}

// copyStart takes the rest of the line too: data begins on the next one.
func (s *scan) copyStart() (Item, error) {
	for {
		c, ok := s.peek(0)
		if !ok {
			return Item{}, s.r.unterminated()
		}
		s.i++
		switch c {
		case '\n':
			s.r.inCopy, s.r.midLine = true, false
			return s.r.take(CopyStart, s.i, s.body), nil
		case ' ', '\t', '\r':
			if err := s.bounded(); err != nil {
				return Item{}, err
			}
		default:
			return Item{}, errAfterCopy
		}
	}
}

func identStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func identPart(c byte) bool { return identStart(c) || c >= '0' && c <= '9' || c == '$' }
