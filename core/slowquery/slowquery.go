// Package slowquery has the rules of the statements that owners and admins see of a database: which are shown, in what order, how
// many, and what is left of their texts.
package slowquery

import (
	"cmp"
	"slices"

	"github.com/pgherd/pgherd/core/fault"
)

// Statement is what PostgreSQL has counted of all executions of one statement by one login: statements that differ in their
// constants alone are one.
type Statement struct {
	// ID is PostgreSQL's query identifier, as in pg_stat_activity.
	ID       string `json:"id"`
	Username string `json:"username"`
	Text     string `json:"text"`
	Calls    int64  `json:"calls"`
	Rows     int64  `json:"rows"`
	// Times of execution, in milliseconds.
	TotalMs float64 `json:"totalMs"`
	MeanMs  float64 `json:"meanMs"`
	MaxMs   float64 `json:"maxMs"`
}

// Order is what comes first in a list.
type Order string

// The orders.
const (
	ByTotal Order = "total" // what took most time in all
	ByMean  Order = "mean"  // what took most time each time
	ByCalls Order = "calls" // what was executed most often
)

// Orders lists them.
var Orders = []Order{ByTotal, ByMean, ByCalls}

// Values lists them for the API's description.
func (Order) Values() []Order { return Orders }

// ParseOrder takes the orders; VALIDATION_ERROR.
func ParseOrder(s string) (Order, error) { return fault.OneOf("order", s, Orders...) }

// Most is how many statements are shown.
const Most = 50

// Top are the first in an order of those that may be shown, with their texts as they are shown.
func Top(all []Statement, o Order) []Statement {
	top := make([]Statement, 0, Most)
	for _, s := range slices.SortedFunc(slices.Values(all), o.compare) {
		text, ok := Text(s.Text)
		if !ok {
			continue
		}
		s.Text = text
		if top = append(top, s); len(top) == Most {
			break
		}
	}
	return top
}

// compare is negative where a comes before b. Two that are equal have an order, too, so that a list looks the same when it is
// read again.
func (o Order) compare(a, b Statement) int {
	by := cmp.Compare(b.TotalMs, a.TotalMs)
	switch o {
	case ByMean:
		by = cmp.Compare(b.MeanMs, a.MeanMs)
	case ByCalls:
		by = cmp.Compare(b.Calls, a.Calls)
	case ByTotal:
	}
	return cmp.Or(by, cmp.Compare(a.ID, b.ID), cmp.Compare(a.Username, b.Username))
}
