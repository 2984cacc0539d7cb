// Package machine is the shape of every state machine of the service: a table in which every cell is written out.
package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// Cell is what an event does in a state: it leads to Next, with effects that the caller must carry out, or it is refused with a
// code.
type Cell[S ~string] struct {
	Next    S
	Effects []string
	Code    fault.Code
}

// To leads to another state, or to the same one.
func To[S ~string](next S, effects ...string) Cell[S] { return Cell[S]{Next: next, Effects: effects} }

// Refuse rejects the event with the code; nothing changes.
func Refuse[S ~string](code fault.Code) Cell[S] { return Cell[S]{Code: code} }

// Table has a row for each state and a column for each event.
type Table[S, E ~string] map[S]map[E]Cell[S]

// Decide looks the cell up. A refusal is a fault that names state and event; a missing cell is a programming error and is
// refused as INTERNAL_ERROR.
func (t Table[S, E]) Decide(from S, on E) (Cell[S], error) {
	cell, ok := t[from][on]
	if !ok {
		return cell, fault.New(fault.InternalError, "no cell for %s in state %s", on, from)
	}
	if cell.Code != "" {
		return cell, fault.New(cell.Code, "%s is not possible while the status is %s", words(on), from)
	}
	return cell, nil
}

func words[E ~string](e E) string { return strings.ReplaceAll(string(e), "_", " ") }

// Holes lists the cells that are missing.
func (t Table[S, E]) Holes(states []S, events []E) []string {
	var holes []string
	for _, s := range states {
		for _, e := range events {
			if _, ok := t[s][e]; !ok {
				holes = append(holes, fmt.Sprintf("%s/%s", s, e))
			}
		}
	}
	return holes
}

// Markdown writes the table as docs/states.md shows it: rows are states, columns are events.
func (t Table[S, E]) Markdown(states []S, events []E) string {
	var b strings.Builder
	b.WriteString("| state |")
	for _, e := range events {
		fmt.Fprintf(&b, " %s |", words(e))
	}
	b.WriteString("\n| - |" + strings.Repeat(" - |", len(events)) + "\n")
	for _, s := range states {
		fmt.Fprintf(&b, "| `%s` |", s)
		for _, e := range events {
			b.WriteString(" " + t[s][e].text() + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (c Cell[S]) text() string {
	if c.Code != "" {
		return string(c.Code)
	}
	out := "`" + string(c.Next) + "`"
	if effects := slices.Clone(c.Effects); len(effects) > 0 {
		out += ": " + strings.Join(effects, ", ")
	}
	return out
}
