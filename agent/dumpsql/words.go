package dumpsql

import "iter"

// Tokens yields the words, numbers, literals, quoted names and other characters of one statement, each with where it begins.
// White space and comments are left out. The statement must be one that a Reader has split: a text with a literal that is not
// closed ends early. Of a long statement no more is read than is asked for.
func Tokens(sql []byte) iter.Seq2[int, string] {
	return func(yield func(at int, text string) bool) {
		r := &Reader{buf: sql, end: len(sql), eof: true, limits: Limits{Statement: len(sql) + 1}, line: 1}
		s := scan{r: r, seen: true}
		for {
			c, ok := s.peek(0)
			if !ok {
				return
			}
			at, blank := s.i, s.blank(c)
			if _, err := s.token(c); err != nil {
				return
			}
			if !blank && !yield(at, string(sql[at:s.i])) {
				return
			}
		}
	}
}
