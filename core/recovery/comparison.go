package recovery

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Held is a table as a database had it at a moment.
type Held struct {
	Table   Table
	Columns []Column // in their order
	Count
}

// Column is one of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as PostgreSQL writes it
}

// Count is how many rows a table has.
type Count struct {
	Rows      int64 `json:"rows"`
	Estimated bool  `json:"estimated,omitempty"` // there was no time to count them
}

// Comparison is the result of a comparison of two moments. What is alike at both is only counted: tables with the same columns
// and as many rows, whatever is in them.
type Comparison struct {
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	Tables    []Difference `json:"tables"`    // by name
	Unchanged int          `json:"unchanged"` // tables
	LeftOut   int          `json:"leftOut"`   // tables that differ, too, for want of room
}

// Difference is a table that the moments do not have alike.
type Difference struct {
	Table   string         `json:"table"`
	Change  Change         `json:"change"`
	Before  *Count         `json:"before"` // null: it was not there
	After   *Count         `json:"after"`
	Columns []ColumnChange `json:"columns"` // of a table that both have
	LeftOut int            `json:"columnsLeftOut,omitempty"`
}

// Change is what has become of a table.
type Change string

// The changes of tables.
const (
	TableAdded   Change = "added"
	TableDropped Change = "dropped"
	TableAltered Change = "altered" // its columns differ; its rows may
	RowsDiffer   Change = "rows"    // their number does
)

// ColumnChange is a column that has come, gone, or got another type.
type ColumnChange struct {
	Name   string  `json:"name"`
	Before *string `json:"before"` // its type; null: there was none
	After  *string `json:"after"`
}

// mostColumns bounds the columns of one table that a comparison shows.
const mostColumns = 100

// Compare says how what a database held at two moments differs. It is bounded: what is left out is counted.
func Compare(from, to time.Time, before, after []Held) Comparison {
	c := Comparison{From: from, To: to, Tables: []Difference{}}
	then, now := byTable(before), byTable(after)
	for _, h := range before {
		if _, both := now[h.Table]; !both {
			c.Tables = append(c.Tables, Difference{
				Table: h.Table.String(), Change: TableDropped, Before: &h.Count, Columns: []ColumnChange{},
			})
		}
	}
	for _, h := range after {
		was, both := then[h.Table]
		d := Difference{Table: h.Table.String(), Change: TableAdded, After: &h.Count, Columns: []ColumnChange{}}
		if both {
			d.Before, d.Columns = &was.Count, columnsBetween(was.Columns, h.Columns)
			switch {
			case len(d.Columns) > 0:
				d.Change = TableAltered
			case was.Rows != h.Rows:
				d.Change = RowsDiffer
			default:
				c.Unchanged++
				continue
			}
		}
		d.LeftOut = max(0, len(d.Columns)-mostColumns)
		d.Columns = d.Columns[:len(d.Columns)-d.LeftOut]
		c.Tables = append(c.Tables, d)
	}
	slices.SortStableFunc(c.Tables, func(a, b Difference) int { return cmp.Compare(a.Table, b.Table) })
	size := 0
	for i, d := range c.Tables {
		text, _ := json.Marshal(d) // it has nothing that cannot be written
		if size += len(text) + 1; size > mostResult-1<<10 {
			c.LeftOut, c.Tables = len(c.Tables)-i, c.Tables[:i]
			break
		}
	}
	return c
}

func byTable(list []Held) map[Table]Held {
	all := make(map[Table]Held, len(list))
	for _, h := range list {
		all[h.Table] = h
	}
	return all
}

// columnsBetween are the columns that differ, those that are gone first. The order of columns does not count.
func columnsBetween(before, after []Column) []ColumnChange {
	list, then, now := []ColumnChange{}, map[string]string{}, map[string]bool{}
	for _, c := range after {
		now[c.Name] = true
	}
	for _, c := range before {
		then[c.Name] = c.Type
		if !now[c.Name] {
			list = append(list, ColumnChange{c.Name, &c.Type, nil})
		}
	}
	for _, c := range after {
		was, both := then[c.Name]
		switch {
		case !both:
			list = append(list, ColumnChange{c.Name, nil, &c.Type})
		case was != c.Type:
			list = append(list, ColumnChange{c.Name, &was, &c.Type})
		}
	}
	return list
}
