package terminal

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Field is one named value of what a command shows; nil where there is none. The type has no name of its own, so that other
// packages may write a row without the names of its members.
type Field = struct {
	Name  string
	Value any
}

// Row is one thing: its fields in the order in which they are shown.
type Row []Field

// Section is a value that a record shows below its name.
type Section interface{ Print(p Printer) }

// Size is a number of bytes, which people read in its largest unit.
type Size int64

func (s Size) String() string { return Bytes(int64(s)) }

// Printer writes rows for people. Nothing in a value moves the cursor.
type Printer struct {
	Paper
	Now    time.Time // records tell how long before or after it a time is; not where it is zero
	Ages   bool      // lists tell only that
	Brief  bool      // records leave out what has no value, and say yes and no instead of true and false
	Colour bool
}

// List writes rows as a table below the names of their fields. A column in which no row has a value is left out, unless it is the
// first.
func (p Printer) List(rows []Row) {
	lines, states := make([][]string, 1+len(rows)), []bool{}
	for i, f := range rows[0] {
		cells, some := make([]string, len(rows)), i == 0
		for n, r := range rows {
			cells[n] = p.cell(r[i].Value)
			some = some || cells[n] != NoValue
		}
		if !some {
			continue
		}
		states = append(states, f.Name == "STATUS")
		lines[0] = append(lines[0], f.Name)
		for n, cell := range cells {
			lines[1+n] = append(lines[1+n], cell)
		}
	}
	if p.Colour {
		p.Paint = func(entry, column int, text string) string {
			switch {
			case entry == 0:
				return coloured(faint, text)
			case states[column]:
				return paint(text)
			}
			return text
		}
	}
	p.Table(lines)
}

// Record writes a line for each field of a row, however long it is: what somebody copies stays in one piece.
func (p Printer) Record(r Row) {
	width := 0
	for _, f := range r {
		width = max(width, Columns(Visible(f.Name)))
	}
	for _, f := range r {
		name := Visible(f.Name) + ":"
		if section, is := f.Value.(Section); is {
			p.Line(name)
			below := p
			below.Paper = p.Indented()
			section.Print(below)
			continue
		}
		value := p.value(f.Value)
		if p.Brief && value == NoValue {
			continue
		}
		if p.Colour && f.Name == "Status" {
			value = paint(value)
		}
		p.Line(Padded(name, width+3) + value)
	}
}

// value is what a record says of a value.
func (p Printer) value(v any) string {
	t, is := v.(time.Time)
	if at, pointer := v.(*time.Time); pointer && at != nil {
		t, is = *at, true
	}
	if is && !p.Now.IsZero() {
		return t.UTC().Format(time.RFC3339) + " (" + Age(t, p.Now) + ")"
	}
	p.Ages = false
	return p.cell(v)
}

// cell is what a list says of a value.
func (p Printer) cell(v any) string {
	switch v := v.(type) {
	case nil:
		return NoValue
	case time.Time:
		if p.Ages {
			return Age(v, p.Now)
		}
		return v.UTC().Format(time.RFC3339)
	case time.Duration:
		return Lasting(v)
	case bool:
		if p.Brief {
			return map[bool]string{true: "yes", false: "no"}[v]
		}
	}
	switch given := reflect.ValueOf(v); {
	case given.Kind() == reflect.Pointer && given.IsNil():
		return NoValue
	case given.Kind() == reflect.Pointer:
		return p.cell(given.Elem().Interface())
	case given.Kind() == reflect.Slice:
		texts := make([]string, given.Len())
		for i := range texts {
			texts[i] = p.cell(given.Index(i).Interface())
		}
		v = strings.Join(texts, ", ")
	}
	if text := Visible(fmt.Sprint(v)); text != "" {
		return text
	}
	return NoValue
}

// The colours of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// paint colours a status: green for what is well, red for what has failed, yellow for what is on its way.
func paint(status string) string {
	switch status {
	case "active", "ready", "succeeded", "verified", "enabled", "completed", "delivered", "recoverable":
		return coloured(green, status)
	case "error", "failed", "unavailable", "disabled", "expired":
		return coloured(red, status)
	case "stopped", "revoked", "canceled", "deleted", "removed":
		return coloured(faint, status)
	}
	return coloured(yellow, status)
}

func coloured(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }
