package sidecar

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgherd/pgherd/agent/dumpsql"
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

// statement is one of a sidecar, and what it was parsed as.
type statement struct {
	place
	sql    []byte // valid while the statement is looked at
	words  []word // of a long one, those of the beginning
	parsed any
}

// A statement that is longer is not parsed beyond its beginning, and compared as it is written. A customer makes statements of
// many megabytes, and the words of one take many times as much.
const (
	long      = 256 << 10
	beginning = 64 << 10
)

// normal is the text of the statement in the form in which it is compared, without some of its words.
func (s statement) normal(from, to int) string {
	if len(s.sql) <= long {
		return normal(slices.Concat(s.words[:from], s.words[to:]))
	}
	if from == to {
		return string(s.sql)
	}
	return string(s.sql[:s.words[from].at]) + string(s.sql[s.words[to].at:])
}

// source reads the statements of a sidecar.
type source struct {
	dump    *dumpsql.Reader
	at      place
	grantor string // of the grants that follow
	grants  grants // of one object
	version major  // of the server that was dumped, as the dump says
}

func newSource(text io.Reader) *source {
	origin, text := OriginOf(text)
	return &source{dump: dumpsql.NewReader(text, dumpsql.Limits{}), version: origin.major()}
}

var errData = errors.New("a sidecar has no data")

// each calls do for every statement. Those about the privileges of one object come together.
func (s *source) each(do func(statement) error) error {
	for {
		item, err := s.dump.Next()
		switch {
		case errors.Is(err, io.EOF):
			return s.flush(do)
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
		if err := s.statement(item.SQL(), do); err != nil {
			return s.located(err)
		}
	}
}

func (s *source) statement(sql []byte, do func(statement) error) error {
	st := statement{place: s.at, sql: sql}
	if len(sql) > long {
		sql = sql[:beginning]
	}
	st.words = split(sql)
	parsed, err := parse(st.words, s.version)
	if err != nil {
		return err
	}
	switch p := parsed.(type) {
	case authorization:
		s.grantor = p.role
		return nil
	case grant:
		p.grantor = s.grantor
		if len(s.grants.list) > 0 && s.grants.list[0].same(p.object) {
			s.grants.list = append(s.grants.list, p)
			return nil
		}
		err = s.flush(do)
		s.grants = grants{s.at, []grant{p}}
		return err
	}
	if err := s.flush(do); err != nil {
		return err
	}
	st.parsed = parsed
	return do(st)
}

// flush hands out the grants that were kept.
func (s *source) flush(do func(statement) error) error {
	g := s.grants
	s.grants = grants{}
	if len(g.list) == 0 {
		return nil
	}
	return do(statement{place: g.place, parsed: g})
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
	if object, owner, ok := item.About(); ok {
		s.at.object, s.at.owner = shorten(object), owner
	}
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
