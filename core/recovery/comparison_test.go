package recovery

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func held(name string, rows int64, columns ...Column) Held {
	return Held{Table: Table{"public", name}, Columns: columns, Count: Count{Rows: rows}}
}

func TestHowMomentsDiffer(t *testing.T) {
	id, name, long := Column{"id", "integer"}, Column{"name", "text"}, Column{"name", "character varying(9)"}
	before := []Held{
		held("same", 3, id, name), held("reordered", 3, id, name), held("gone", 7, id), held("more", 1, id),
		held("altered", 2, id, name),
		{Table: Table{"app", "guess"}, Columns: []Column{id}, Count: Count{9, true}},
	}
	after := []Held{
		{Table: Table{"app", "guess"}, Columns: []Column{id}, Count: Count{10, true}}, held("altered", 2, long, Column{"at", "date"}),
		held("more", 5, id), held("new", 0), held("reordered", 3, name, id), held("same", 3, id, name),
	}
	got := Compare(noon, noon, before, after)
	want := Comparison{From: noon, To: noon, Unchanged: 2, Tables: []Difference{
		{Table: "altered", Change: TableAltered, Before: &Count{Rows: 2}, After: &Count{Rows: 2}, Columns: []ColumnChange{
			{"id", new("integer"), nil}, {"name", new("text"), new("character varying(9)")}, {"at", nil, new("date")},
		}},
		{Table: "app.guess", Change: RowsDiffer, Before: &Count{9, true}, After: &Count{10, true}, Columns: []ColumnChange{}},
		{Table: "gone", Change: TableDropped, Before: &Count{Rows: 7}, Columns: []ColumnChange{}},
		{Table: "more", Change: RowsDiffer, Before: &Count{Rows: 1}, After: &Count{Rows: 5}, Columns: []ColumnChange{}},
		{Table: "new", Change: TableAdded, After: &Count{}, Columns: []ColumnChange{}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again := Compare(noon, noon, after, after); len(again.Tables) != 0 || again.Unchanged != len(after) {
		t.Errorf("the same is %+v", again)
	}
}

func TestAComparisonIsBounded(t *testing.T) {
	var wide, none []Column
	for i := range 1600 {
		wide = append(wide, Column{fmt.Sprintf("column_with_a_long_name_%d", i), "timestamp with time zone"})
	}
	after := []Held{held("wide", 1, wide...)}
	for i := range 5000 {
		after = append(after, held(fmt.Sprintf("table%d", i), 1))
	}
	c := Compare(noon, noon, []Held{held("wide", 1, none...)}, after)
	text, err := json.Marshal(c)
	if err != nil || len(text) > 64<<10 || len(text) < 50<<10 || len(c.Tables)+c.LeftOut != len(after) {
		t.Errorf("%d bytes, %d tables, %d left out (%v)", len(text), len(c.Tables), c.LeftOut, err)
	}
	only := Compare(noon, noon, []Held{held("wide", 1, none...)}, after[:1]).Tables[0]
	if len(only.Columns) != 100 || only.LeftOut != 1500 {
		t.Errorf("%d columns, %d left out", len(only.Columns), only.LeftOut)
	}
}
