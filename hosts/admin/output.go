package admin

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

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

// record is a command's output: its fields in the order in which they are shown.
type record []field

// MarshalJSON writes an object with the fields in their order.
func (r record) MarshalJSON() ([]byte, error) {
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

// show prints one record: JSON, or a line for each field.
func (m *metadata) show(cmd *cobra.Command, r record) error {
	if m.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, f := range r {
		if _, err := fmt.Fprintf(w, "%s:\t%v\n", f.name, f.text()); err != nil {
			return err
		}
	}
	return w.Flush()
}

// list prints records as a JSON array, or as a table with the first record's field names as its header.
func list[T any](m *metadata, cmd *cobra.Command, entries []T, view func(T) record) error {
	records := make([]record, len(entries))
	for i, e := range entries {
		records[i] = view(e)
	}
	if m.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(records)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i, r := range records {
		if i == 0 {
			printRow(w, r, func(f field) any { return f.name })
		}
		printRow(w, r, field.text)
	}
	return w.Flush()
}

func printRow(w *tabwriter.Writer, r record, cell func(field) any) {
	for _, f := range r {
		_, _ = fmt.Fprintf(w, "%v\t", cell(f)) // Flush tells of a failure
	}
	_, _ = fmt.Fprintln(w)
}
