package dumpsql

// token is a word, a number, a literal, a quoted name or one other character of a statement.
type token struct {
	at   int
	text string
}

// tokens splits one statement. White space and comments are left out. It is used on statements that a Reader has split, so
// every literal is closed; a text that is not so ends early.
func tokens(sql []byte) []token {
	r := &Reader{buf: sql, end: len(sql), eof: true, limits: Limits{Statement: len(sql) + 1}, line: 1}
	s := scan{r: r, seen: true}
	var list []token
	for {
		c, ok := s.peek(0)
		if !ok {
			return list
		}
		at, blank := s.i, s.blank(c)
		if _, err := s.token(c); err != nil {
			return list
		}
		if !blank {
			list = append(list, token{at: at, text: string(sql[at:s.i])})
		}
	}
}
