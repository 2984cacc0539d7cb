package sidecar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
)

// StatementError says which statement of a sidecar was at fault.
type StatementError struct {
	Number, Line int64
	Object       string // as pg_dump's comment names it; may be empty
	Err          error
}

func (e *StatementError) Error() string {
	object := ""
	if e.Object != "" {
		object = ", " + e.Object
	}
	return fmt.Sprintf("statement %d on line %d%s: %v", e.Number, e.Line, object, e.Err)
}

func (e *StatementError) Unwrap() error { return e.Err }

// place is where a statement stands and what pg_dump's comment before it says.
type place struct {
	number, line int64
	object       string // "TABLE public.t"
	owner        string // of the object
}

func (p place) failed(err error) error { return &StatementError{p.number, p.line, p.object, err} }

// source reads the statements of a sidecar.
type source struct {
	dump *dumpsql.Reader
	at   place
}

func newSource(text io.Reader) *source {
	return &source{dump: dumpsql.NewReader(text, dumpsql.Limits{})}
}

var errData = errors.New("a sidecar has no data")

// each calls do for every statement.
func (s *source) each(do func(p place, words []word, parsed any) error) error {
	for {
		item, err := s.dump.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch item.Kind {
		case dumpsql.Meta, dumpsql.Trailer:
			continue
		case dumpsql.Statement, dumpsql.CopyStart, dumpsql.CopyData, dumpsql.CopyEnd:
		}
		s.note(item)
		if item.Kind != dumpsql.Statement {
			return s.at.failed(errData)
		}
		words := split(item.SQL())
		parsed, err := parse(words)
		if err == nil {
			err = do(s.at, words, parsed)
		}
		if err != nil {
			return s.located(err)
		}
	}
}

func (s *source) located(err error) error {
	if located := new(StatementError); errors.As(err, &located) {
		return err
	}
	return s.at.failed(err)
}

// note keeps what the comment before a statement says. It holds for the statements that follow without one.
func (s *source) note(item dumpsql.Item) {
	s.at.number++
	s.at.line = item.Line
	for line := range bytes.Lines(item.Text[:item.Body]) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), "-- Name: "); ok {
			s.at.object, s.at.owner = heading(rest)
		}
	}
}

// heading reads "f(integer); Type: FUNCTION; Schema: public; Owner: shop". pg_dump has put it on one line; only the name can
// hold what looks like more.
func heading(text string) (object, owner string) {
	text, owner = cutLast(text, "; Owner: ")
	text, schema := cutLast(text, "; Schema: ")
	name, kind := cutLast(text, "; Type: ")
	if schema != "" && schema != "-" {
		name = schema + "." + name
	}
	return shorten(kind + " " + name), owner
}

func cutLast(text, separator string) (before, after string) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):]
	}
	return text, ""
}

// shorten bounds what of a customer's names goes into messages.
func shorten(text string) string {
	const most = 200
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if len(text) <= most {
		return text
	}
	for text = text[:most]; !utf8.ValidString(text); text = text[:len(text)-1] {
	}
	return text + "..."
}
