// Package machine is the shape of every state machine of the service: a table with a cell for each state and event.
package machine

import (
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
		words := strings.ReplaceAll(string(on), "_", " ")
		return cell, fault.New(cell.Code, "%s is not possible while the status is %s", words, from)
	}
	return cell, nil
}
