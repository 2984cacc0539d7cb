package admin

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// lineWidth is how many columns of a terminal a table takes at most.
const lineWidth = 80

// field is one named value of a command's output; the name is the one in JSON.
type field = terminal.Field

// output is what a command shows: a row, or a table of them. With --json it is marshaled.
type output = terminal.Section

// row is one thing: its fields in the order in which they are shown.
type row []field

// MarshalJSON writes an object with the fields in their order.
func (r row) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range r {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// Print writes a line for each field.
func (r row) Print(p terminal.Printer) { p.Record(terminal.Row(r)) }

// named is the value of a field; nil where there is none.
func (r row) named(name string) any {
	if at := slices.IndexFunc(r, func(f field) bool { return f.Name == name }); at >= 0 {
		return r[at].Value
	}
	return nil
}

// table is a list: a JSON array, or lines below the names of the first row's fields.
type table []row

func tableOf[T any](entries []T, view func(T) row) table {
	rows := make(table, len(entries))
	for i, e := range entries {
		rows[i] = view(e)
	}
	return rows
}

// Print writes all fields of the rows.
func (t table) Print(p terminal.Printer) { t.only().Print(p) }

// only picks the fields that people are shown, in their order; all, where none is named. One that has no value in any row is left
// out. JSON has all.
func (t table) only(names ...string) listing { return listing{t, names} }

// listing is a table of which people are shown some fields.
type listing struct {
	table
	names []string
}

// without leaves out some of the fields.
func (l listing) without(names []string) listing {
	return listing{l.table, slices.DeleteFunc(l.names, func(name string) bool { return slices.Contains(names, name) })}
}

// MarshalJSON writes the table.
func (l listing) MarshalJSON() ([]byte, error) { return json.Marshal(l.table) }

// Print writes the fields of the rows that people are shown.
func (l listing) Print(p terminal.Printer) {
	if len(l.table) == 0 {
		p.Line("none")
		return
	}
	names := l.names
	if len(names) == 0 {
		for _, f := range l.table[0] {
			names = append(names, f.Name)
		}
	}
	rows := make([]terminal.Row, len(l.table))
	for i, r := range l.table {
		for _, name := range names {
			rows[i] = append(rows[i], field{name, r.named(name)})
		}
	}
	p.List(rows)
}

// show prints a command's output: JSON, or text for people.
func (m *metadata) show(cmd *cobra.Command, o output) error {
	var text bytes.Buffer
	if m.json {
		if err := json.NewEncoder(&text).Encode(o); err != nil {
			return err
		}
		_, err := io.WriteString(cmd.OutOrStdout(), terminal.VisibleJSON(text.String()))
		return err
	}
	o.Print(terminal.Printer{Paper: terminal.Paper{To: &text, Width: lineWidth}, Now: system.NewClock().Now()})
	_, err := cmd.OutOrStdout().Write(text.Bytes())
	return err
}
