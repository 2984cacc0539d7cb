package upload

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// The comments with which pg_dump begins a dump as SQL text, and ends it once everything is written. What follows in newer
// versions is \unrestrict.
const (
	headLine    = "-- PostgreSQL database dump"
	ClosingLine = "-- PostgreSQL database dump complete"
)

// Ending finds out, while a dump is read, whether it is whole. A dump that was cut off between two statements is a good one but
// for its closing line, and where pg_dump could not log in, there is nothing at all.
type Ending struct {
	begun  bool // a dump whose closing line has not come yet
	cut    bool // another dump began before that
	closed bool // nothing has come since the last closing line
	makes  bool // a statement has come that makes or fills something
}

// Comment notes a comment to the end of its line.
func (e *Ending) Comment(text string) {
	switch strings.TrimRight(text, " \t\r\n") {
	case headLine:
		e.cut = e.cut || e.begun
		e.begun, e.closed = true, false
	case ClosingLine:
		e.begun, e.closed = false, true
	}
}

// Statement notes a statement, and whether it makes or fills something.
func (e *Ending) Statement(makes bool) {
	e.closed = false
	e.makes = e.makes || makes
}

// Whole reports whether the last that has come is a closing line, and each dump before it was closed too.
func (e *Ending) Whole() bool { return e.closed && !e.cut }

// Check refuses what would empty the database, and what may be a part of a dump only, unless that is accepted:
// UPLOAD_INCOMPLETE.
func (e *Ending) Check(acceptIncomplete bool) error {
	const again = "make the dump again, with \"set -o pipefail\" before it, and look at what pg_dump says"
	switch {
	case !e.makes:
		return fault.New(fault.UploadIncomplete, "the upload has no statement that makes or fills anything,"+
			" so the database would be empty: %s", again)
	case e.Whole() || acceptIncomplete:
		return nil
	case e.cut:
		return fault.New(fault.UploadIncomplete, "the upload holds several dumps, and one of them ends without pg_dump's closing"+
			" line, so that a part may be missing: %s; if it is whole all the same, complete it with acceptIncomplete", again)
	}
	return fault.New(fault.UploadIncomplete, "the upload does not end with pg_dump's closing line, %q, so that a part may be"+
		" missing: %s; if it is whole all the same, as the file of another program, complete it with acceptIncomplete",
		ClosingLine, again)
}

// idle are the beginnings of lines that make nothing.
var idle = []string{"SET ", "SELECT pg_catalog.set_config("}

// ReadEnding looks at a dump line by line. It knows no SQL: a line within a literal or a row is taken for what it looks like. The
// database server reads it as SQL, and decides.
func ReadEnding(text io.Reader) (e Ending, err error) {
	lines := bufio.NewReader(text)
	for {
		line, err := lines.ReadSlice('\n')
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0 || trimmed[0] == '\\':
		case bytes.HasPrefix(trimmed, []byte("--")):
			e.Comment(string(trimmed))
		default:
			e.Statement(!slices.ContainsFunc(idle, func(begins string) bool { return bytes.HasPrefix(trimmed, []byte(begins)) }))
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = lines.ReadSlice('\n')
		}
		switch {
		case errors.Is(err, io.EOF):
			return e, nil
		case err != nil:
			return e, err
		}
	}
}
