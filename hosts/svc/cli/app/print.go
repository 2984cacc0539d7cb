package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/itchyny/gojq"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// Field is one of a record or of an entry of a list. It is left out where its value is nil.
type Field = terminal.Field

// ShowList prints entries as a table, or as a JSON array of them; none is what people read where there are none.
func ShowList[T any](a *App, entries []T, none string, fieldsOf func(T) []Field) error {
	if a.WantsJSON() {
		if entries == nil {
			entries = []T{}
		}
		return a.ShowJSON(entries)
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(a.Out, none)
		return err
	}
	rows := make([]terminal.Row, len(entries))
	for i, e := range entries {
		rows[i] = fieldsOf(e)
	}
	return a.print(func(p terminal.Printer) { p.List(rows) })
}

// ShowAll prints a list as ShowList does, unless it could not be read.
func ShowAll[T any](a *App, list iter.Seq2[T, error], none string, fieldsOf func(T) []Field) error {
	entries, err := Collected(list)
	if err != nil {
		return err
	}
	return ShowList(a, entries, none, fieldsOf)
}

// ShowRecord prints one thing, a line for each field, or the JSON of what the API says of it.
func (a *App) ShowRecord(answer any, fields ...Field) error {
	if a.WantsJSON() {
		return a.ShowJSON(answer)
	}
	return a.print(func(p terminal.Printer) { p.Record(fields) })
}

// print writes for people: on a terminal with ages and colours.
func (a *App) print(write func(terminal.Printer)) error {
	var text bytes.Buffer
	p := terminal.Printer{
		Paper: terminal.Paper{To: &text, Width: a.Out.Width}, Brief: true, Ages: a.Out.Terminal, Colour: a.Out.colour,
	}
	if a.Out.Terminal {
		p.Now = a.clock.now()
	}
	write(p)
	_, err := a.Out.Write(text.Bytes())
	return err
}

// Say prints what was done; with --json, the API's answer.
func (a *App) Say(answer any, format string, args ...any) error {
	if a.WantsJSON() {
		return a.ShowJSON(answer)
	}
	_, err := fmt.Fprintln(a.Out, terminal.Visible(fmt.Sprintf(format, args...)))
	return err
}

// Done is Say where it was done, and else why it was not.
func (a *App) Done(answer any, err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return a.Say(answer, format, args...)
}

// WantsJSON reports whether JSON is to be printed, or what --jq makes of it.
func (a *App) WantsJSON() bool { return a.json || a.filter != nil }

// ShowJSON prints JSON as the API writes it, or what the filter makes of it: strings as they are, each on a line of its own.
func (a *App) ShowJSON(answer any) error {
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if a.filter != nil {
		return a.showFiltered(raw)
	}
	var text bytes.Buffer
	if a.Out.Terminal {
		if err := json.Indent(&text, raw, "", "  "); err != nil {
			return err
		}
	} else {
		text.Write(raw)
	}
	_, err = fmt.Fprintln(a.Out, terminal.VisibleJSON(text.String()))
	return err
}

func (a *App) showFiltered(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	for results := a.filter.RunWithContext(a.Ctx, value); ; {
		result, more := results.Next()
		if !more {
			return nil
		}
		var halt *gojq.HaltError
		switch err, is := result.(error); {
		case is && errors.As(err, &halt) && halt.Value() == nil:
			return nil
		case is && a.Ctx.Err() != nil:
			return a.Ctx.Err()
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
		} else if a.Out.Terminal {
			text = terminal.VisibleLines(text)
		}
		if _, err := fmt.Fprintln(a.Out, text); err != nil {
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
		return nil, Usage("--jq: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, Usage("--jq: %w", err)
	}
	return code, nil
}
