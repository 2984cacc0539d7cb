package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// field is one of a record or of an entry of a list. It is left out where its value is nil.
type field = terminal.Field

// showList prints entries as a table, or as a JSON array of them; none is what people read where there are none.
func showList[T any](a *app, entries []T, none string, fieldsOf func(T) []field) error {
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
	rows := make([]terminal.Row, len(entries))
	for i, e := range entries {
		rows[i] = fieldsOf(e)
	}
	return a.print(func(p terminal.Printer) { p.List(rows) })
}

// showRecord prints one thing, a line for each field, or the JSON of what the API says of it.
func (a *app) showRecord(answer any, fields ...field) error {
	if a.wantsJSON() {
		return a.showJSON(answer)
	}
	return a.print(func(p terminal.Printer) { p.Record(fields) })
}

// print writes for people: on a terminal with ages and colours.
func (a *app) print(write func(terminal.Printer)) error {
	var text bytes.Buffer
	p := terminal.Printer{
		Paper: terminal.Paper{To: &text, Width: a.out.width}, Brief: true, Ages: a.out.terminal, Colour: a.out.colour,
	}
	if a.out.terminal {
		p.Now = a.clock.now()
	}
	write(p)
	_, err := a.out.Write(text.Bytes())
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
