package dumpsql

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Kind says what an Item is.
type Kind int

// The items of a dump. Their texts, joined, are the dump.
const (
	Statement Kind = iota // one SQL statement with its semicolon, and the white space and comments before it
	CopyStart             // a COPY ... FROM stdin statement and the line end after it; data follows
	CopyData              // whole lines of COPY data, or a piece of a line too long for the buffer
	CopyEnd               // the line \.
	Meta                  // \restrict or \unrestrict, with what stands before it
	Trailer               // white space and comments after the last statement
)

// Item is a piece of a dump. Text is valid until the next call of Next.
type Item struct {
	Kind Kind
	Text []byte
	Body int   // where, in Text, the white space and comments before a statement end
	Line int64 // the line of the dump on which the statement itself begins, from 1
}

// SQL is the statement without what stands before it.
func (i Item) SQL() []byte { return i.Text[i.Body:] }

// Limits bound what a Reader takes. Zero means the default.
type Limits struct {
	Statement int   // bytes of one statement with the comments before it; default 64 MiB
	Total     int64 // bytes of the whole dump; default without limit
}

const (
	defaultStatement = 64 << 20
	bufferSize       = 256 << 10
)

// Errors of a Reader. They come wrapped in a *SyntaxError, which names the line.
var (
	ErrStatementTooLong = errors.New("statement is too long")
	ErrTooLong          = errors.New("dump is too long")
	ErrUnterminated     = errors.New("the dump ends in the middle of a statement or of COPY data")
	ErrBackslash        = errors.New("backslash command is not allowed in a dump")
	ErrRestrictKey      = errors.New("\\restrict and \\unrestrict do not match")
	ErrZeroByte         = errors.New("zero byte in a statement")
)

// SyntaxError says where a dump cannot be read.
type SyntaxError struct {
	Line int64
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *SyntaxError) Unwrap() error { return e.Err }

// Reader splits a dump. It is not safe for concurrent use.
type Reader struct {
	src    io.Reader
	limits Limits
	buf    []byte // buf[start:end] is what was read and not yet handed out
	start  int
	end    int
	eof    bool
	total  int64
	line   int64 // of buf[start]
	err    error

	inCopy      bool
	midLine     bool // the last CopyData ended within a line
	midText     bool // the last item ended within a line
	restrictKey string
}

// NewReader reads a dump as plain text from src.
func NewReader(src io.Reader, limits Limits) *Reader {
	if limits.Statement <= 0 {
		limits.Statement = defaultStatement
	}
	return &Reader{src: src, limits: limits, buf: make([]byte, bufferSize), line: 1}
}

// Next returns the next item, or io.EOF after the last. Any other error is final.
func (r *Reader) Next() (Item, error) {
	if r.err != nil {
		return Item{}, r.err
	}
	item, err := r.next()
	switch {
	case err == nil:
		return item, nil
	case r.err == nil: // otherwise the source has failed, and nothing is known of what it would have given
		r.err = r.located(err)
	}
	return Item{}, r.err
}

func (r *Reader) located(err error) error {
	var located *SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.As(err, &located):
		return err
	default:
		return &SyntaxError{Line: r.line, Err: err}
	}
}

func (r *Reader) next() (Item, error) {
	if r.inCopy {
		return r.copyItem()
	}
	s := scan{r: r}
	return s.statement()
}

// at returns the byte i bytes after start, reading on where needed. Past the end, or after an error, ok is false.
func (r *Reader) at(i int) (c byte, ok bool) {
	if r.start+i >= r.end && !r.fill(i+1) {
		return 0, false
	}
	return r.buf[r.start+i], true
}

// fill reads until at least n bytes are unread in the buffer; false at the end of the dump and after an error.
func (r *Reader) fill(n int) bool {
	for r.end-r.start < n {
		if r.eof || r.err != nil {
			return false
		}
		if r.end == len(r.buf) {
			r.makeRoom()
		}
		read, err := r.src.Read(r.buf[r.end:])
		r.end += read
		r.total += int64(read)
		switch {
		case r.limits.Total > 0 && r.total > r.limits.Total:
			r.err = r.located(ErrTooLong)
		case errors.Is(err, io.EOF):
			r.eof = true
		case err != nil:
			r.err = err
		}
	}
	return true
}

// makeRoom moves what is unread to the front, or doubles the buffer where it is full of it. The length of a statement is
// bounded by its scan, so the buffer is too.
func (r *Reader) makeRoom() {
	unread := r.buf[r.start:r.end]
	if len(unread) > len(r.buf)/2 {
		grown := make([]byte, 2*len(r.buf))
		copy(grown, unread)
		r.buf = grown
	} else {
		copy(r.buf, unread)
	}
	r.start, r.end = 0, len(unread)
}

// take hands out the next n bytes.
func (r *Reader) take(kind Kind, n, body int) Item {
	text := r.buf[r.start : r.start+n]
	item := Item{Kind: kind, Text: text, Body: body, Line: r.line + int64(bytes.Count(text[:body], newline))}
	r.start += n
	r.midText = n > 0 && text[n-1] != '\n'
	r.line = item.Line + int64(bytes.Count(text[body:], newline))
	r.shrink()
	return item
}

// shrink drops a buffer that one long statement made large, once it is empty. Text that was handed out stays valid: it keeps
// the old buffer alive.
func (r *Reader) shrink() {
	if len(r.buf) > 8*bufferSize && r.start == r.end {
		r.buf, r.start, r.end = make([]byte, bufferSize), 0, 0
	}
}

var newline = []byte{'\n'}
