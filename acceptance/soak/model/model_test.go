package model

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const stopped Fact = "database 1/status"

// Of requests in a row, each answered or not, what the service then says is never held against it.
func TestFactsTakeEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, actual := NewFacts(), ""
		var lost []string
		value := rapid.SampledFrom([]string{"active", "stopped", "deleted"})
		for step := range rapid.IntRange(1, 20).Draw(t, "steps") {
			if len(lost) > 0 && rapid.Bool().Draw(t, "late") {
				actual = rapid.SampledFrom(lost).Draw(t, "which") // a lost request is carried out after others
			}
			v := value.Draw(t, "value")
			switch rapid.SampledFrom([]Outcome{Done, Refused, Unknown}).Draw(t, "outcome") {
			case Done:
				actual = v
				f.Note(stopped, v, step, Done)
			case Refused:
				f.Note(stopped, v, step, Refused)
			case Unknown:
				lost = append(lost, v)
				if rapid.Bool().Draw(t, "carried out") {
					actual = v
				}
				f.Note(stopped, v, step, Unknown)
			}
			if rapid.IntRange(0, 5).Draw(t, "quiet") == 0 {
				if err := f.Settle(stopped, actual); err != nil {
					t.Fatal(err)
				}
				lost = nil
			}
		}
		if !f.May(stopped, actual) {
			t.Fatalf("it is %q, which cannot be", actual)
		}
	})
}

// What an answer has promised is held against the service.
func TestABrokenPromiseIsSeen(t *testing.T) {
	f := NewFacts()
	f.Note(stopped, "stopped", 3, Done)
	f.Note(stopped, "deleted", 4, Refused)
	for _, read := range []string{"deleted", "active", ""} {
		g := NewFacts()
		g.of[stopped] = &possible{now: map[string]int{"stopped": 3}, late: map[string]int{}}
		if err := g.Settle(stopped, read); err == nil {
			t.Errorf("it may be %q", read)
		}
	}
	if !f.Is(stopped, "stopped") || f.May(stopped, "deleted") {
		t.Error("what was refused counts")
	}
	f.Forget("database 1")
	if len(f.Known()) != 0 || !f.May(stopped, "deleted") {
		t.Error("what was forgotten counts")
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }

// One reality of writes and restores, whatever is known of it, is always among what a table takes for possible.
func TestTablesTakeEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		actual, clock := map[int]bool{}, 0
		history := map[int][]int{} // what there was, by second
		for row := range rapid.IntRange(1, 20).Draw(t, "events") {
			begun := clock
			clock += rapid.IntRange(0, 2).Draw(t, "before")
			history[clock] = keys(actual)
			answered, done := rapid.Bool().Draw(t, "answered"), rapid.Bool().Draw(t, "done")
			known := time.Time{}
			restores := rapid.IntRange(0, 4).Draw(t, "restores") == 0
			kept := map[int]bool{}
			for n := range actual {
				if rapid.Bool().Draw(t, "kept") {
					kept[n] = true
				}
			}
			if answered || done {
				if restores {
					actual = kept
				} else {
					actual[row] = true
				}
			}
			clock += rapid.IntRange(1, 3).Draw(t, "after")
			if answered {
				known = at(clock)
			}
			if restores {
				by := None()
				for n := range kept {
					by.must[n] = true
				}
				table.Replace(by, at(begun), known)
			} else {
				table.Write(row, at(begun), known)
			}
			history[clock] = keys(actual)
		}
		for second, rows := range history {
			if err := table.Between(at(second), at(second)).Compare(rows); err != nil {
				t.Fatalf("at %d: %v", second, err)
			}
		}
		if err := table.Settle(keys(actual), at(clock+1)); err != nil {
			t.Fatal(err)
		}
		if err := table.Between(at(clock+2), at(clock+2)).Compare(keys(actual)); err != nil {
			t.Fatalf("after it was read: %v", err)
		}
	})
}

func keys(set map[int]bool) (list []int) {
	for n := range set {
		list = append(list, n)
	}
	return list
}

func TestALostRowIsSeen(t *testing.T) {
	var table Table
	table.Write(1, at(0), at(1))
	table.Write(2, at(2), time.Time{})
	now := func() Contents { return table.Between(at(9), at(9)) }
	for _, read := range [][]int{{}, {2}, {1, 1}, {1, 3}} {
		if now().Compare(read) == nil {
			t.Errorf("it may hold %v", read)
		}
	}
	for _, read := range [][]int{{1}, {1, 2}} {
		if err := now().Compare(read); err != nil {
			t.Errorf("%v: %v", read, err)
		}
	}
	if before := table.Between(at(0), at(0)); before.Compare([]int{}) != nil || before.Compare([]int{1}) != nil {
		t.Error("while it is written, a row may be there or not")
	}
}

func TestLogins(t *testing.T) {
	var l Login
	l.Told("first")
	if l.Known() != "first" || !l.May("first") || l.May("other") {
		t.Error("a password that was told is not the one")
	}
	l.Changing()
	if l.Known() != "" || !l.May("first") || !l.May("other") {
		t.Error("while a change goes on, either may be")
	}
	l.Told("second")
	if l.Known() != "second" || l.May("first") || !slices.Contains(l.Refused(), "first") {
		t.Error("what was changed is still taken")
	}
	l.Changed()
	if l.Known() != "" || l.May("second") || !l.May("third") {
		t.Error("what was changed is still taken, or no other is")
	}
	l.Close()
	if l.May("third") || len(l.Refused()) != 2 {
		t.Error("a closed login lets somebody in")
	}
}

func TestCanariesAreFound(t *testing.T) {
	var c Canaries
	c.Add("short", "a coincidence")
	c.Add("a secret of the tests", "the store's key")
	if c.Count() != 1 || len(c.In([]byte("it says: a secret of the tests."))) != 1 || len(c.In([]byte("it is short"))) != 0 {
		t.Error("a secret is not found, or something else is")
	}
}
