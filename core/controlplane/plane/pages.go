package plane

import (
	"github.com/pgherd/pgherd/ports"
)

// OnePastEnd asks for one entry more than requested, to find out whether there is a next page.
func OnePastEnd(p ports.Page) ports.Page {
	if p.Limit > 0 {
		p.Limit++
	}
	return p
}

// Cut removes that extra entry again and returns the position of the next page, if there is one.
func Cut[T any](list []T, p ports.Page, position func(T) ports.Position) ([]T, *ports.Position) {
	if p.Limit == 0 || len(list) <= p.Limit {
		return list, nil
	}
	list = list[:p.Limit]
	last := position(list[p.Limit-1])
	return list, &last
}
