package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// Table is a list. Where it comes whole, people sort and filter it by the address of the page.
type Table struct {
	Caption string
	Fold    string // what is to be opened before the rows are seen; empty: they are seen
	Columns []Column
	Rows    []Row
	Empty   *Empty
	Next    string // where the list goes on
	First   string // where it begins, of a later page

	Filter   *Form
	Filtered bool
}

// Column is one of a table's.
type Column struct {
	Title  string
	Number bool
	Sort   string // name in the address; empty: the table is not sorted by it

	Href  string
	Order string // "ascending", "descending" or empty
}

// Row is one of a table's.
type Row struct {
	Cells []Cell
}

// Parameters of the address.
const (
	sortParameter   = "sort"
	filterParameter = "q"
)

// Arrange sorts and filters a table that has come whole as the address says. An order that the table does not have is none.
func (t *Table) Arrange(r *Request) *Table {
	here := r.http.URL.EscapedPath()
	if r.Failure != nil {
		here = filled(r.page.Back, r.http.PathValue)
	}
	wanted, filter := r.Query(sortParameter), strings.TrimSpace(r.Query(filterParameter))
	name, down := strings.CutPrefix(wanted, "-")
	sorted := false
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Sort == "" {
			continue
		}
		next := c.Sort
		if c.Sort == name {
			sorted, c.Order = true, "ascending"
			if next = "-" + c.Sort; down {
				c.Order, next = "descending", c.Sort
			}
			slices.SortStableFunc(t.Rows, func(a, b Row) int {
				order := compareCells(a.Cells[i], b.Cells[i])
				if down {
					return -order
				}
				return order
			})
		}
		c.Href = here + "?" + query(Pair{sortParameter, next}, Pair{filterParameter, filter})
	}
	if len(t.Rows) > 8 || filter != "" {
		t.Filter = &Form{
			Action: here, Get: true, Submit: "Filter",
			Fields: []*Field{{Name: filterParameter, Label: "Filter", Type: "search", Value: filter, Optional: true}},
		}
		if sorted {
			t.Filter.Hidden = []Pair{{sortParameter, wanted}}
		}
	}
	if filter != "" {
		t.Filtered = true
		t.Rows = slices.DeleteFunc(t.Rows, func(row Row) bool { return !row.has(ascii.Lower(filter)) })
	}
	return t
}

func (row Row) has(text string) bool {
	return slices.ContainsFunc(row.Cells, func(c Cell) bool {
		mark := ""
		if c.Mark != nil {
			mark = c.Mark.Text
		}
		return strings.Contains(ascii.Lower(c.Text+"\n"+c.Sub+"\n"+mark), text)
	})
}

func compareCells(a, b Cell) int {
	if order := cmp.Compare(a.Key, b.Key); order != 0 {
		return order
	}
	return cmp.Compare(ascii.Lower(a.sortText()), ascii.Lower(b.sortText()))
}

func (c Cell) sortText() string {
	if c.Text == "" && c.Mark != nil {
		return c.Mark.Text
	}
	return c.Text
}

// query is that of the pairs that have a value.
func query(pairs ...Pair) string {
	values := url.Values{}
	for _, p := range pairs {
		if p.Value != "" {
			values.Set(p.Name, p.Value)
		}
	}
	return values.Encode()
}
