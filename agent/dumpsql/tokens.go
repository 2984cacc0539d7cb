package dumpsql

// token is a word, a number, a literal, a quoted name or one other character of a statement.
type token struct {
	at   int
	text string
}

// tokens are those of a statement that is not long.
func tokens(sql []byte) []token {
	var list []token
	for at, text := range Tokens(sql) {
		list = append(list, token{at: at, text: text})
	}
	return list
}
