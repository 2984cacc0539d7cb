package dumpsql

import (
	"bytes"
	"iter"
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

// Comments yields the comments to the end of a line that stand before a statement, or at the end of the dump.
func (i Item) Comments() iter.Seq[string] {
	return func(yield func(string) bool) {
		for at, text := 0, i.Text[:i.Body]; at < len(text); {
			switch rest := text[at:]; {
			case bytes.HasPrefix(rest, []byte("--")):
				n := bytes.IndexAny(rest, "\n\r")
				if n < 0 {
					n = len(rest)
				}
				if !yield(string(rest[:n])) {
					return
				}
				at += n
			case bytes.HasPrefix(rest, []byte("/*")):
				at += blockLength(rest)
			default:
				at++
			}
		}
	}
}

// blockLength is that of the block comment at the beginning of a text; blocks nest.
func blockLength(text []byte) int {
	depth := 0
	for n := 0; n < len(text); n++ {
		switch {
		case bytes.HasPrefix(text[n:], []byte("/*")):
			depth++
			n++
		case bytes.HasPrefix(text[n:], []byte("*/")):
			depth--
			n++
		}
		if depth == 0 {
			return n + 1
		}
	}
	return len(text)
}
