package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// moment is a time: in JSON as the API writes it.
type moment time.Time

// stamp is the value of a time; nil for none.
func stamp(t *time.Time) any {
	if t == nil {
		return nil
	}
	return moment(*t)
}

// MarshalJSON writes the time with its fractions of a second.
func (t moment) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format(time.RFC3339Nano))
}

func (t moment) String() string { return time.Time(t).UTC().Format(time.RFC3339) }

// age says how long ago a time was, or how long it is until then.
func (t moment) age(now time.Time) string { return terminal.Age(time.Time(t), now) }

// bytesOf is a number of bytes: in JSON a number.
type bytesOf int64

func (b bytesOf) String() string { return terminal.Bytes(int64(b)) }

// usage is how much of a quota is used: in JSON an object.
type usage[T any] struct {
	Used  T `json:"used"`
	Quota T `json:"quota"`
}

func (u usage[T]) String() string { return fmt.Sprint(u.Used, " of ", u.Quota) }

// counts is how many there are of each: in JSON an object.
type counts map[string]int

func (c counts) String() string {
	texts := make([]string, 0, len(c))
	for _, of := range slices.Sorted(maps.Keys(c)) {
		texts = append(texts, fmt.Sprintf("%s=%d", of, c[of]))
	}
	return strings.Join(texts, " ")
}

// paper is where text for people is written.
type paper struct {
	terminal.Paper
	now time.Time
}

func (p paper) indented() paper { return paper{p.Indented(), p.now} }

// value is what a record says of a value.
func (p paper) value(v any) string {
	if t, is := v.(moment); is {
		return t.String() + " (" + t.age(p.now) + ")"
	}
	return p.cell(v)
}

// cell is what a table says of a value. Nothing that a customer has chosen moves the terminal's cursor.
func (p paper) cell(v any) string {
	switch v := v.(type) {
	case nil:
		return terminal.NoValue
	case audit.Details:
		return orNone(pairs(v))
	case fmt.Stringer:
		return orNone(terminal.Visible(v.String()))
	}
	switch given := reflect.ValueOf(v); given.Kind() {
	case reflect.Pointer:
		if given.IsNil() {
			return terminal.NoValue
		}
		return p.cell(given.Elem().Interface())
	case reflect.Slice:
		texts := make([]string, given.Len())
		for i := range texts {
			texts[i] = p.cell(given.Index(i).Interface())
		}
		return orNone(strings.Join(texts, ", "))
	default:
		return orNone(terminal.Visible(fmt.Sprint(v)))
	}
}

func orNone(text string) string {
	if text == "" {
		return terminal.NoValue
	}
	return text
}

// pairs are the entries of a map as "key=value", by key; a value with spaces or quotes is quoted.
func pairs(of map[string]string) string {
	texts := make([]string, 0, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) {
		text := of[key]
		if text == "" || strings.ContainsAny(text, " \"=") || terminal.Visible(text) != text {
			text = strconv.Quote(text)
		}
		texts = append(texts, key+"="+text)
	}
	return strings.Join(texts, " ")
}

// escapeErrors has the errors of a command and of those below it escaped: servers say in them what customers have chosen.
func escapeErrors(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		escapeErrors(c)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil {
				return visibleError{err}
			}
			return nil
		}
	}
}

// visibleError is an error whose lines a terminal can show.
type visibleError struct{ error }

func (e visibleError) Unwrap() error { return e.error }

func (e visibleError) Error() string { return terminal.VisibleLines(e.error.Error()) }
