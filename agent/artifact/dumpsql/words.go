package dumpsql

import "iter"

// Tokens yields the words, numbers, literals, quoted names and other characters of one statement, each with where it begins.
// White space and comments are left out. The statement must be one that a Reader has split.
func Tokens(sql []byte) iter.Seq2[int, string] {
	return func(yield func(at int, text string) bool) {
		for _, t := range tokens(sql) {
			if !yield(t.at, t.text) {
				return
			}
		}
	}
}
