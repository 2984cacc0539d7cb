package load_test

import (
	"strings"
)

// tape makes decisions of a fuzzer's bytes. Once they are used up, each is the first of its choices.
type tape struct{ rest []byte }

func (t *tape) upTo(n int) int {
	if len(t.rest) == 0 {
		return 0
	}
	first := t.rest[0]
	t.rest = t.rest[1:]
	return int(first) % n
}

func (t *tape) pick(choices ...string) string { return choices[t.upTo(len(choices))] }

// odd are pieces of which the insides of strings, names, comments and bodies are made: everything that means something elsewhere.
var odd = []string{
	"a", ";", "--", "/*", "*/", "$$", "$a$", "$_", `"`, "'", `\`, `\\`, "\n", "\t", "\r\n", "\n\\.\n", "\\restrict k\n",
	"\n\\qecho run\n", " ", "é", "日本", "😀", "(", ")", "begin atomic", "end;", "COPY t FROM stdin;\n", ":x", "E'", "U&'", "%", "{",
	"=", ",", "0", "\v", "\\n", "\\N", "$", "CASE ", "END", "BEGIN ATOMIC ", "\f", "\x01", "\u00a0", "\ufeff", "\r", "--\r", "#",
	"\n\\connect x\n", "\n.\n", "\\\\.", "\n\\.\r\n", "-- Name: x; Type: TABLE; Schema: s; Owner: o\n", "IS NULL", "?",
}

// inside is a text of odd pieces, with each of the marks doubled.
func (t *tape) inside(doubled ...string) string {
	var b strings.Builder
	for range t.upTo(6) {
		b.WriteString(t.pick(odd...))
	}
	text := b.String()
	for _, mark := range doubled {
		text = strings.ReplaceAll(text, mark, mark+mark)
	}
	return text
}

// copied is in the name of each table that data is copied into, and nowhere else.
const copied = "copied_into"

// soup is a text that a client can split, though few of its statements mean anything.
func soup(t *tape) string {
	var b strings.Builder
	restricted := t.upTo(4) == 1
	if restricted {
		b.WriteString("\\restrict Key7\n")
	}
	for len(t.rest) > 0 {
		b.WriteString(t.blank())
		switch t.upTo(4) {
		case 0: // with a word first: without one, psql may skip what follows, as if that were data of a COPY that has failed
			b.WriteString(t.pick("SELECT", "ALTER", "CREATE", "create or replace view", "SET a", "a$b", "é") + " " + t.anyTokens(3) + ";")
		case 1:
			b.WriteString(t.copyBlock())
		default:
			b.WriteString(t.routine() + ";")
		}
	}
	b.WriteString("\n")
	if restricted {
		b.WriteString("\\unrestrict Key7\n")
	}
	return b.String()
}

// routine makes a function with what psql takes for a body of BEGIN ATOMIC, or without. What it does not take for it is left out:
// any BEGIN that is a name.
func (t *tape) routine() string {
	head := t.pick("CREATE", "create") + t.blank() + " " + t.pick("", "OR REPLACE ", "or\nreplace ")
	head += t.pick("FUNCTION ", "procedure ") + t.pick("f", `"begin"`, `s."f;"`)
	head += "(" + t.anyTokens(2) + ")" + t.blank() + " LANGUAGE sql "
	if t.upTo(2) == 0 {
		return head + t.anyTokens(3)
	}
	body := " BEGIN" + t.blank() + " ATOMIC "
	for range t.upTo(4) {
		body += t.anyTokens(2) + t.pick("", " CASE WHEN a THEN b END ", " case when (case 1 when 2 then 3 end) then 4 end ") + ";"
	}
	return head + body + t.blank() + " END"
}

// copyBlock is a COPY with its data.
func (t *tape) copyBlock() string {
	text := t.pick("COPY ", "copy\n", "Copy/* c; */ ") + t.pick("", "s.", `"S;".`) + t.pick(copied, `"`+copied+`;"`) +
		t.pick("", " (a, b)", ` ("from", "stdin;")`) + t.blank() + t.pick(" FROM stdin", " from STDIN", " FROM\nstdin") +
		t.pick(";\n", " ;  \n", " WITH (DELIMITER ';');\n")
	for range t.upTo(6) {
		line := strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(t.inside())
		line += t.pick("", "\t\\N", "\\\\.", strings.Repeat("x;", 5000))
		text += t.pick("", " ", `\.x`, `\\.`, `\. `) + line + "x\n"
	}
	return text + t.pick("\\.\n", "\\.\n", "\\.\r\n")
}

// blank is white space and comments.
func (t *tape) blank() (text string) {
	for range t.upTo(4) {
		switch t.upTo(3) {
		case 0:
			text += t.pick(" ", "\n", "\t", "\r\n", "\f", "\v")
		case 1:
			text += " --" + strings.NewReplacer("\n", "", "\r", "").Replace(t.inside()) + "\n"
		default:
			text += t.comment(2)
		}
	}
	return text
}

// comment is one with others within.
func (t *tape) comment(deepest int) string {
	text := strings.NewReplacer("/*", "", "*/", "", "*", "", "/", "").Replace(t.inside())
	if deepest > 0 && t.upTo(3) == 1 {
		text += " " + t.comment(deepest-1) + "; "
	}
	return "/*" + t.pick("", "*", "-") + text + t.pick("*/", " */", "**/")
}

// anyTokens are some in no order, with brackets closed.
func (t *tape) anyTokens(deepest int) (text string) {
	for range t.upTo(7) {
		text += t.token(deepest) + t.blank()
	}
	return text
}

func (t *tape) token(deepest int) string {
	switch t.upTo(14) {
	case 0:
		return t.pick("a ", "FROM ", "stdin ", "é日 ", "e ", "u& ", "copy ", "function ", "x$y$z ", "_1 ", "atomic ")
	case 1:
		return `"` + t.inside(`"`) + `"`
	case 2:
		return " '" + t.inside("'") + "'"
	case 3: // with a comma, as psql does not know that a string on the next line may continue it
		return t.pick(" E'", " e'") + t.inside(`\`, "'") + t.pick("", `\'`, `\\`, `\x27`, `\';`) + "',"
	case 4:
		mark := t.pick("'", `"`)
		return t.pick(" U&", " u&") + mark + `d\0061` + t.inside(mark) + mark
	case 5:
		return t.pick(" B'", " x'", " N'", " n'") + t.pick("01", ";") + "'"
	case 6:
		return t.dollars()
	case 7:
		return t.pick(" 1 ", " 1.5e7,", " 0x1F ", " 1_000 ", " .5 ", " $1 ", " $2,")
	case 8: // with a blank after a minus, which begins no comment then
		return t.pick(" + ", "<->", "!=- ", "::text", "@", "/ ", "- ", "*/* c; */", "+-- c;\n", "->>", ",", "s.t", "[1:2]")
	case 9:
		return t.comment(3)
	default:
		if deepest == 0 {
			return " a "
		}
		return t.pick("(", " (;", "(\n") + t.anyTokens(deepest-1) + t.pick(")", ";)")
	}
}

// dollars is a dollar-quoted text, which does not hold its own mark.
func (t *tape) dollars() string {
	mark := t.pick("$$", "$a$", "$_1$", "$é$", "$body$")
	text := t.inside() + t.pick("", "$b", "$b$", "$1", "$ $")
	for strings.Contains(text, mark) {
		text = strings.ReplaceAll(text, mark, "")
	}
	for strings.Contains(text+mark[:len(mark)-1], mark) { // nor begin it at its end
		text += " "
	}
	return " " + mark + text + mark + " "
}
