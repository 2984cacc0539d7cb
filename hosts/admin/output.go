package admin

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// field is one named value of a command's output; the name is the one in JSON.
type field struct {
	name  string
	value any // nil where there is none
}

// text is what a person is shown.
func (f field) text() any {
	if f.value == nil {
		return ""
	}
	return f.value
}

// output is what a command shows: a row, or a table of them.
type output interface{ print(w *tabwriter.Writer) }

// row is one thing: its fields in the order in which they are shown.
type row []field

// MarshalJSON writes an object with the fields in their order.
func (r row) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range r {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// print writes a line for each field. Flush tells of a failure.
func (r row) print(w *tabwriter.Writer) {
	for _, f := range r {
		_, _ = fmt.Fprintf(w, "%s:\t%v\n", f.name, f.text())
	}
}

// line writes all fields in one line.
func (r row) line(w *tabwriter.Writer, cell func(field) any) {
	for _, f := range r {
		_, _ = fmt.Fprintf(w, "%v\t", cell(f))
	}
	_, _ = fmt.Fprintln(w)
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

func (t table) print(w *tabwriter.Writer) {
	for i, r := range t {
		if i == 0 {
			r.line(w, func(f field) any { return f.name })
		}
		r.line(w, field.text)
	}
}

// show prints a command's output: JSON, or text for people.
func (m *metadata) show(cmd *cobra.Command, o output) error {
	if m.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(o)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	o.print(w)
	return w.Flush()
}

// stamp writes a time as the API does; nil for none.
func stamp(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
