package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// column is one of a list: its name, and what it says of an entry. It is left out where it says nothing of any.
type column[T any] struct {
	name string
	of   func(T) any
}

// field is one of a record. It is left out where its value is nil.
type field struct {
	name  string
	value any
}

// byteCount is a number of bytes, which people read in larger units.
type byteCount int64

// seconds is a duration, which people read in its largest unit.
type seconds time.Duration

// showList prints entries as a table, or as a JSON array of them; none is what people read where there are none.
func showList[T any](a *app, entries []T, none string, columns ...column[T]) error {
	if a.wantsJSON() {
		if entries == nil {
			entries = []T{}
		}
		return a.showJSON(entries)
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(a.out, none)
		return err
	}
	lines, states := make([][]string, 1+len(entries)), []bool{}
	for i, c := range columns {
		cells, some := make([]string, len(entries)), i == 0
		for n, e := range entries {
			cells[n] = a.cell(c.of(e))
			some = some || cells[n] != terminal.NoValue
		}
		if !some {
			continue
		}
		states = append(states, c.name == "STATUS")
		lines[0] = append(lines[0], c.name)
		for n, cell := range cells {
			lines[1+n] = append(lines[1+n], cell)
		}
	}
	var text bytes.Buffer
	paper := terminal.Paper{To: &text, Width: a.out.width}
	if a.out.colour {
		paper.Paint = func(entry, column int, text string) string {
			if entry == 0 {
				return "\x1b[2m" + text + "\x1b[0m"
			}
			if states[column] {
				return paint(text)
			}
			return text
		}
	}
	paper.Table(lines)
	_, err := a.out.Write(text.Bytes())
	return err
}

// showRecord prints one thing, a line for each field, or the JSON of what the API says of it.
func (a *app) showRecord(answer any, fields ...field) error {
	if a.wantsJSON() {
		return a.showJSON(answer)
	}
	width := 0
	for _, f := range fields {
		width = max(width, terminal.Columns(terminal.Visible(f.name)))
	}
	var text strings.Builder
	for _, f := range fields {
		value := a.value(f.value)
		if value == terminal.NoValue {
			continue
		}
		if a.out.colour && f.name == "Status" {
			value = paint(value)
		}
		fmt.Fprintln(&text, terminal.Padded(terminal.Visible(f.name)+":", width+3)+value)
	}
	_, err := fmt.Fprint(a.out, text.String())
	return err
}

// say prints what was done; with --json, the API's answer.
func (a *app) say(answer any, format string, args ...any) error {
	if a.wantsJSON() {
		return a.showJSON(answer)
	}
	_, err := fmt.Fprintln(a.out, terminal.Visible(fmt.Sprintf(format, args...)))
	return err
}

func (a *app) wantsJSON() bool { return a.json || a.filter != nil }

// showJSON prints JSON as the API writes it, or what the filter makes of it: strings as they are, each on a line of its own.
func (a *app) showJSON(answer any) error {
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if a.filter != nil {
		return a.showFiltered(raw)
	}
	var text bytes.Buffer
	if a.out.terminal {
		if err := json.Indent(&text, raw, "", "  "); err != nil {
			return err
		}
	} else {
		text.Write(raw)
	}
	_, err = fmt.Fprintln(a.out, terminal.VisibleJSON(text.String()))
	return err
}

func (a *app) showFiltered(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	for results := a.filter.RunWithContext(a.ctx, value); ; {
		result, more := results.Next()
		if !more {
			return nil
		}
		var halt *gojq.HaltError
		switch err, is := result.(error); {
		case is && errors.As(err, &halt) && halt.Value() == nil:
			return nil
		case is && a.ctx.Err() != nil:
			return a.ctx.Err()
		case is:
			return fmt.Errorf("--jq: %w", err) // The command has done its work: no wrong usage.
		}
		text, is := result.(string)
		if !is {
			raw, err := gojq.Marshal(result)
			if err != nil {
				return err
			}
			text = terminal.VisibleJSON(string(raw))
		} else if a.out.terminal {
			text = terminal.VisibleLines(text)
		}
		if _, err := fmt.Fprintln(a.out, text); err != nil {
			return err
		}
	}
}

// compile reads a jq expression; nil for none.
func compile(expression string) (*gojq.Code, error) {
	if expression == "" {
		return nil, nil
	}
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, usage("--jq: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, usage("--jq: %w", err)
	}
	return code, nil
}

// value is what a record says of a value.
func (a *app) value(v any) string {
	t, is := v.(time.Time)
	if at, pointer := v.(*time.Time); pointer && at != nil {
		t, is = *at, true
	}
	if is && a.out.terminal {
		return t.UTC().Format(time.RFC3339) + " (" + terminal.Age(t, a.clock.now()) + ")"
	}
	return a.cell(v)
}

// cell is what a table says of a value: ages on a terminal, times elsewhere. Nothing in it moves the cursor.
func (a *app) cell(v any) string {
	switch v := v.(type) {
	case nil:
		return terminal.NoValue
	case time.Time:
		if a.out.terminal {
			return terminal.Age(v, a.clock.now())
		}
		return v.UTC().Format(time.RFC3339)
	case byteCount:
		return terminal.Bytes(int64(v))
	case seconds:
		return terminal.Lasting(time.Duration(v))
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	if given := reflect.ValueOf(v); given.Kind() == reflect.Pointer {
		if given.IsNil() {
			return terminal.NoValue
		}
		return a.cell(given.Elem().Interface())
	}
	if text := terminal.Visible(fmt.Sprint(v)); text != "" {
		return text
	}
	return terminal.NoValue
}

// paint colours a status: green for what is well, red for what has failed, yellow for what is on its way.
func paint(status string) string {
	colour := "33"
	switch status {
	case "active", "ready", "succeeded", "verified", "enabled", "completed", "delivered", "recoverable":
		colour = "32"
	case "error", "failed", "unavailable", "disabled", "expired":
		colour = "31"
	case "stopped", "revoked", "canceled", "deleted", "removed":
		colour = "2"
	}
	return "\x1b[" + colour + "m" + status + "\x1b[0m"
}
