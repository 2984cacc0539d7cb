package dumpsql

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// Sequence is where a dump sets a sequence, as its setval statement says.
type Sequence struct {
	Name   string // quoted as in the dump
	Last   int64
	Called bool
}

// Portable turns a dump from pg_dump into one that can be restored into any server of the source's version, by any login: it
// leaves out settings that the server does not know (a newer pg_dump writes them) and the roles of policies, and adds the one
// setting on which the reading of a value depends. On the way it tells what it sees.
type Portable struct {
	// Known reports whether the server knows a setting.
	Known func(setting string) bool
	// Data is told how many bytes were copied since it was last called.
	Data func(n int)
	// Table is told of each COPY block that begins, with the table's quoted name and the names of the columns, unquoted.
	Table func(name string, columns []string)
	// Lines is told the lines of the block, in pieces.
	Lines func(text []byte)
	// Sequence is told of each sequence's position.
	Sequence func(Sequence)
	// LargeObject is told of each large object whose content follows, and Content of that, in pieces.
	LargeObject func(oid uint32)
	Content     func(data []byte)
}

// Copy reads the dump from src and writes the portable one to dst.
func (p Portable) Copy(dst io.Writer, src io.Reader) error {
	r := NewReader(src, Limits{})
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := p.item(item)
		if err != nil {
			return r.located(err)
		}
		if _, err := dst.Write(text); err != nil {
			return fmt.Errorf("write dump: %w", err)
		}
	}
}

func (p Portable) item(item Item) ([]byte, error) {
	p.Data(len(item.Text))
	switch item.Kind {
	case CopyStart:
		p.Table(copyTarget(item.SQL()))
	case CopyData:
		p.Lines(item.Text)
	case Statement:
		return p.statement(item), p.largeObject(item.SQL())
	case CopyEnd, Meta, Trailer:
	}
	return item.Text, nil
}

// monetary is the setting under which the dump's session has written values of the type money, which pg_dump does not say. Under
// another, the same text can be another amount.
const monetary = "\nSET lc_monetary = 'C';"

func (p Portable) statement(item Item) []byte {
	sql := item.SQL()
	if name, ok := Setting(sql); ok {
		switch {
		case !p.Known(name):
			return item.Text[:item.Body]
		case name == "client_encoding":
			return append(bytes.Clone(item.Text), monetary...)
		case name == "lc_monetary":
			return nil
		}
	}
	if bytes.HasPrefix(sql, []byte("CREATE POLICY ")) {
		return append(bytes.Clone(item.Text[:item.Body]), withoutPolicyRoles(sql)...)
	}
	if createsRoutine(sql) && bytes.Contains(sql, []byte("begin")) {
		return append(bytes.Clone(item.Text[:item.Body]), quotedBegin(sql)...)
	}
	if s, ok := sequencePosition(sql); ok {
		p.Sequence(s)
	}
	return item.Text
}

// Setting returns the name that a SET statement of a dump's head sets.
func Setting(sql []byte) (name string, ok bool) {
	rest, ok := bytes.CutPrefix(sql, []byte("SET "))
	if !ok {
		return "", false
	}
	n := bytes.IndexAny(rest, " =")
	if n <= 0 || !bytes.HasPrefix(bytes.TrimLeft(rest[n:], " "), []byte("=")) {
		return "", false
	}
	return string(rest[:n]), true
}

// copyTarget returns the quoted name of the table that a COPY statement fills, and the columns that it lists.
func copyTarget(sql []byte) (string, []string) {
	var name strings.Builder
	var columns []string
	listing := false
	for _, t := range tokens(sql)[1:] { // without COPY
		switch {
		case t.text == ")" || !listing && ascii.Equal(t.text, "from"):
			return name.String(), columns
		case t.text == "(":
			listing = true
		case !listing:
			name.WriteString(t.text)
		case t.text != ",":
			columns = append(columns, Unquoted(t.text))
		}
	}
	return name.String(), columns
}

// CopyTarget returns the name of the table that a COPY statement fills, as it is quoted there.
func CopyTarget(sql []byte) string {
	name, _ := copyTarget(sql)
	return name
}

// withoutPolicyRoles drops TO role, ... from a CREATE POLICY statement: the roles may not exist where it is restored.
func withoutPolicyRoles(sql []byte) []byte {
	from, parens := -1, 0
	for _, t := range tokens(sql) {
		word := ascii.Lower(t.text)
		switch {
		case word == "(":
			parens++
		case word == ")":
			parens--
		case parens > 0:
		case word == "to" && from < 0:
			from = t.at
		case from >= 0 && (word == "using" || word == "with" || word == ";"):
			return append(bytes.TrimRight(bytes.Clone(sql[:from]), " "), joined(sql[t.at:])...)
		}
	}
	return sql
}

func createsRoutine(sql []byte) bool {
	return bytes.HasPrefix(sql, []byte("CREATE FUNCTION ")) || bytes.HasPrefix(sql, []byte("CREATE PROCEDURE "))
}

// quotedBegin quotes, in the definition of a routine, what is called begin: the routine itself, a type, or in a BEGIN ATOMIC body
// an alias or a routine whose parameter is meant. To the server that is the same, but psql mistakes the bare word for the
// beginning of such a body, and then finds no end of the statement. pg_dump writes the keyword in upper case.
func quotedBegin(sql []byte) []byte {
	var out []byte
	done := 0
	for _, t := range tokens(sql) {
		if t.text == "begin" {
			out = append(append(out, sql[done:t.at]...), `"begin"`...)
			done = t.at + len(t.text)
		}
	}
	return append(out, sql[done:]...)
}

// joined adds a blank before the text after a removed clause, unless that is a semicolon.
func joined(rest []byte) []byte {
	if rest[0] == ';' {
		return rest
	}
	return append([]byte{' '}, rest...)
}

const setval = "SELECT pg_catalog.setval("

// sequencePosition reads SELECT pg_catalog.setval('public.s', 5, true);
func sequencePosition(sql []byte) (Sequence, bool) {
	if !bytes.HasPrefix(sql, []byte(setval)) {
		return Sequence{}, false
	}
	t := tokens(sql[len(setval):])
	if len(t) < 6 || t[1].text != "," {
		return Sequence{}, false
	}
	last := t[2].text
	called := t[4].text
	if last == "-" {
		last, called = "-"+t[3].text, t[5].text
	}
	n, err := strconv.ParseInt(last, 10, 64)
	return Sequence{Name: unquoteLiteral(t[0].text), Last: n, Called: called == "true"}, err == nil
}

// unquoteLiteral undoes the quoting of a string; pg_dump writes an E string where there is a backslash.
func unquoteLiteral(text string) string {
	if inner, ok := strings.CutPrefix(text, "E'"); ok {
		return strings.NewReplacer(`\\`, `\`, `''`, `'`).Replace(strings.TrimSuffix(inner, "'"))
	}
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(text, "'"), "'"), "''", "'")
}

// StartsCopy reports whether the statement is a COPY.
func StartsCopy(sql []byte) bool {
	return len(sql) >= 4 && ascii.Equal(string(sql[:4]), "copy") && (len(sql) == 4 || !identPart(sql[4]))
}
