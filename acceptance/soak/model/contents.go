package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Contents are the rows of a database, by their numbers: those that it must hold, and those that it may hold beside them, because
// it is not known whether they were written, or whether they were at some moment.
type Contents struct {
	must, may map[int]bool
}

// None holds no row.
func None() Contents { return Contents{must: map[int]bool{}, may: map[int]bool{}} }

// Holding holds one row, and no other.
func Holding(row int) Contents { return Contents{must: map[int]bool{row: true}, may: map[int]bool{}} }

// Compare says in which way rows that were read are not what the contents can be.
func (c Contents) Compare(read []int) error {
	found := map[int]bool{}
	var twice, unknown []int
	for _, n := range read {
		if found[n] {
			twice = append(twice, n)
		}
		if found[n] = true; !c.must[n] && !c.may[n] {
			unknown = append(unknown, n)
		}
	}
	var lost []int
	for _, n := range slices.Sorted(maps.Keys(c.must)) {
		if !found[n] {
			lost = append(lost, n)
		}
	}
	var wrong []string
	for _, w := range []struct {
		what string
		rows []int
	}{{"lost", lost}, {"not from here", unknown}, {"there twice", twice}} {
		if len(w.rows) > 0 {
			wrong = append(wrong, fmt.Sprintf("%d rows are %s, such as that of step %d", len(w.rows), w.what, w.rows[0]))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

// Either is what is held by what holds the one or the other.
func Either(a, b Contents) Contents {
	c := None()
	for n := range a.must {
		if b.must[n] {
			c.must[n] = true
		}
	}
	for _, all := range []map[int]bool{a.must, a.may, b.must, b.may} {
		for n := range all {
			if !c.must[n] {
				c.may[n] = true
			}
		}
	}
	return c
}

// written is a row: when it was begun to be written, and by when that was known to be done.
type written struct {
	row          int
	begun, known time.Time // known is zero where its answer was lost
}

// replaced is a change of all that a database holds, as by a restore, with the time in which it happened.
type replaced struct {
	begun, known time.Time
	by           Contents
}

// Table is what happened to the rows of one database. Its times are those of the clock that the database's server has.
type Table struct {
	mu     sync.Mutex
	events []any // of written and replaced, in the order of their beginnings
}

// Write takes that a row was written between two moments; known is the zero time where its answer was lost.
func (t *Table) Write(row int, begun, known time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, written{row, begun, known})
}

// Replace takes that other contents took the place of what there was, between two moments; known is zero where that may never
// have happened.
func (t *Table) Replace(by Contents, begun, known time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, replaced{begun, known, by})
}

// Between is what a look at the database holds that was taken at one moment between two.
func (t *Table) Between(from, to time.Time) Contents {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := None()
	for _, e := range t.events {
		switch e := e.(type) {
		case written:
			switch {
			case e.begun.After(to):
			case !e.known.IsZero() && !e.known.After(from):
				c.must[e.row] = true
				delete(c.may, e.row)
			case !c.must[e.row]:
				c.may[e.row] = true
			}
		case replaced:
			switch {
			case e.begun.After(to):
			case !e.known.IsZero() && !e.known.After(from):
				c = Either(e.by, e.by)
			default:
				c = Either(c, e.by)
			}
		}
	}
	return c
}

// Ever is what a look at any moment may have held: some of all that ever was there.
func (t *Table) Ever() Contents {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := None()
	for _, e := range t.events {
		switch e := e.(type) {
		case written:
			c.may[e.row] = true
		case replaced:
			c = Either(c, e.by)
		}
	}
	return Either(c, None())
}

// Settle takes what was read of the database while all was quiet, at a moment. It is an error where that cannot be. From then on
// it is known what it holds, and moments before stay as they were.
func (t *Table) Settle(read []int, at time.Time) error {
	err := t.Between(at, at).Compare(read)
	known := None()
	for _, n := range read {
		known.must[n] = true
	}
	t.Replace(known, at, at)
	return err
}
