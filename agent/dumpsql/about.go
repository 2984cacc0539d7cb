package dumpsql

import (
	"bytes"
	"strings"
)

// About is what pg_dump's comment before a statement says of it: "-- Name: f(int); Type: FUNCTION; Schema: public; Owner: a" is
// about the object "FUNCTION public.f(int)" of a. It holds for the statements that follow without such a comment, too.
func (i Item) About() (object, owner string, ok bool) {
	for line := range bytes.Lines(i.Text[:i.Body]) {
		text := strings.TrimRight(string(line), "\r\n")
		for _, start := range []string{"-- Name: ", "-- Data for Name: "} {
			if rest, found := strings.CutPrefix(text, start); found {
				object, owner = about(rest)
				ok = true
			}
		}
	}
	return object, owner, ok
}

// about reads a comment, which pg_dump has put on one line: only the name can hold what looks like more.
func about(text string) (object, owner string) {
	text, owner = cutLast(text, "; Owner: ")
	text, schema := cutLast(text, "; Schema: ")
	name, kind := cutLast(text, "; Type: ")
	if schema != "" && schema != "-" {
		name = schema + "." + name
	}
	return strings.TrimSpace(kind + " " + name), owner
}

func cutLast(text, separator string) (before, after string) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):]
	}
	return text, ""
}
