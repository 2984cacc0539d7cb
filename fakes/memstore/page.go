package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// byTime is the order of every list: by time, then by ID.
func byTime(at time.Time, a string, bt time.Time, b string) int {
	return cmp.Or(at.Compare(bt), cmp.Compare(a, b))
}

// paged sorts a list by position, upwards or downwards as the direction's sign, and cuts it to a page.
func paged[V any](list []V, p ports.Page, position func(V) ports.Position, direction int) []V {
	compare := func(a, b ports.Position) int {
		return direction * cmp.Or(cmp.Compare(a.Key, b.Key), byTime(a.At, a.ID, b.At, b.ID))
	}
	slices.SortStableFunc(list, func(a, b V) int { return compare(position(a), position(b)) })
	if p.After != nil {
		seen := func(v V) bool { return compare(position(v), *p.After) <= 0 }
		list = slices.DeleteFunc(list, seen)
	}
	return first(list, p.Limit)
}

// pagedByID is paged for positions by time whose IDs are UUIDs.
func pagedByID[V any](list []V, p ports.Page, position func(V) ports.Position, direction int) ([]V, error) {
	return pagedByKey(list, p, position, direction, func(key string) bool { return key == "" })
}

// pagedByKey is paged for positions with such keys whose IDs are UUIDs.
func pagedByKey[V any](
	list []V, p ports.Page, position func(V) ports.Position, direction int, isKey func(string) bool,
) ([]V, error) {
	if p.After != nil {
		if _, err := id.Parse[id.DatabaseID](p.After.ID); err != nil || !isKey(p.After.Key) {
			return nil, ports.ErrCursor()
		}
	}
	return paged(list, p, position, direction), nil
}
