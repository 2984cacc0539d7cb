package memstore

import (
	"cmp"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// byTime is the order of every list: by time, then by ID.
func byTime(at time.Time, a string, bt time.Time, b string) int {
	return cmp.Or(at.Compare(bt), cmp.Compare(a, b))
}

// paged cuts a sorted list to a page. order is byTime upwards, or its opposite.
func paged[V any](list []V, p ports.Page, position func(V) ports.Position, direction int) []V {
	if p.After != nil {
		for len(list) > 0 {
			at := position(list[0])
			if direction*byTime(at.At, at.ID, p.After.At, p.After.ID) > 0 {
				break
			}
			list = list[1:]
		}
	}
	return first(list, p.Limit)
}

// checkUUID refuses a position whose ID no list of UUIDs has returned.
func checkUUID(p ports.Page) error {
	if p.After == nil {
		return nil
	}
	if _, err := id.Parse[id.DatabaseID](p.After.ID); err != nil {
		return errCursor()
	}
	return nil
}

func errCursor() error { return fault.Invalid("cursor", "is not a cursor that this list returned") }
