package dumpsql

import "bytes"

// quote consumes a string that starts here. It continues an E string if only a line end separates the two.
func (s *scan) quote() error {
	escapes := s.escapes && s.lineSeen
	s.endWord(nil)
	err := s.until('\'', escapes)
	s.escapes, s.lineSeen = escapes, false
	return err
}

// until consumes a literal or quoted name up to its closing mark; a doubled mark stands for itself, and so does any character
// after a backslash where escapes count. It leaves a doubled mark as two literals, which comes to the same.
func (s *scan) until(mark byte, escapes bool) error {
	s.i++
	for {
		rest := s.r.buf[s.r.start+s.i : s.r.end]
		n := bytes.IndexByte(rest, mark)
		if escapes {
			if b := bytes.IndexByte(rest[:boundOr(n, len(rest))], '\\'); b >= 0 {
				if err := s.escaped(rest[:b], b); err != nil {
					return err
				}
				continue
			}
		}
		if n >= 0 {
			s.i += n + 1
			if err := s.noZero(rest[:n]); err != nil {
				return err
			}
			if c, ok := s.peek(0); !ok || c != mark {
				return nil
			}
			s.i++ // doubled
			continue
		}
		s.i += len(rest)
		if err := s.more(rest); err != nil {
			return err
		}
		if s.r.eofAt(s.i) {
			return s.r.unterminated()
		}
	}
}

// escaped consumes text up to a backslash, the backslash and the character after it.
func (s *scan) escaped(before []byte, n int) error {
	if err := s.noZero(before); err != nil {
		return err
	}
	s.i += n + 1
	if c, ok := s.peek(0); !ok {
		return s.r.unterminated()
	} else if c == 0 {
		return ErrZeroByte
	}
	s.i++
	return s.bounded()
}

func boundOr(n, otherwise int) int {
	if n < 0 {
		return otherwise
	}
	return n
}

// dollar consumes a dollar-quoted string, or the $ of a parameter.
func (s *scan) dollar() error {
	s.endWord(nil)
	tag, ok := s.dollarTag()
	if !ok {
		s.i++
		return s.r.err
	}
	s.i += len(tag)
	for from := s.i; ; {
		rest := s.r.buf[s.r.start+from : s.r.end]
		if n := bytes.Index(rest, tag); n >= 0 {
			s.i = from + n + len(tag)
			return s.noZero(rest[:n])
		}
		s.i = s.r.end - s.r.start
		keep := min(len(rest), len(tag)-1) // the tag may be half read
		from = s.i - keep
		if err := s.more(rest); err != nil {
			return err
		}
		if s.r.eofAt(s.i) {
			return s.r.unterminated()
		}
	}
}

// dollarTag returns $tag$ where it stands here, as a copy: the buffer may move.
func (s *scan) dollarTag() ([]byte, bool) {
	for n := 1; ; n++ {
		c, ok := s.peek(n)
		switch {
		case !ok:
			return nil, false
		case c == '$':
			return bytes.Clone(s.r.buf[s.r.start+s.i : s.r.start+s.i+n+1]), true
		case n == 1 && !identStart(c), c != '_' && !identPart(c):
			return nil, false
		case s.i+n >= s.r.limits.Statement:
			return nil, false
		}
	}
}

// more checks what was consumed and reads on after it. At the end of the dump it changes nothing: use eofAt to find out.
func (s *scan) more(consumed []byte) error {
	if err := s.noZero(consumed); err != nil {
		return err
	}
	if err := s.bounded(); err != nil {
		return err
	}
	s.r.fill(s.i + 1)
	return s.r.err
}

func (s *scan) bounded() error {
	if s.i >= s.r.limits.Statement {
		return ErrStatementTooLong
	}
	return nil
}

func (s *scan) noZero(text []byte) error {
	if bytes.IndexByte(text, 0) >= 0 {
		return ErrZeroByte
	}
	return nil
}

// eofAt reports whether the dump ends i bytes after start.
func (r *Reader) eofAt(i int) bool { return r.eof && r.start+i >= r.end }
