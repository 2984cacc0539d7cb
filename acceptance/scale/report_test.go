package main

import (
	"strings"
	"testing"
)

func TestWhatGrowsTooFast(t *testing.T) {
	sizes := func(first, last figure) report {
		return report{
			{size{databases: 10, accounts: 1, servers: 1, history: 20}, []figure{first}},
			{size{databases: 1000, accounts: 1, servers: 1, history: 2000}, []figure{last}},
		}
	}
	for name, c := range map[string]struct {
		report report
		broken bool
	}{
		"as much":                   {sizes(figure{"a", 5, milliseconds, 2}, figure{"a", 5, milliseconds, 2}), false},
		"twice as much":             {sizes(figure{"a", 5, milliseconds, 2}, figure{"a", 10, milliseconds, 2}), false},
		"more than that":            {sizes(figure{"a", 5, milliseconds, 2}, figure{"a", 10.1, milliseconds, 2}), true},
		"a third of the rate":       {sizes(figure{"a", 9, aSecond, 2}, figure{"a", 3, aSecond, 2}), true},
		"a higher rate":             {sizes(figure{"a", 9, aSecond, 2}, figure{"a", 90, aSecond, 2}), false},
		"as much as it likes":       {sizes(figure{"a", 1, number, 0}, figure{"a", 99, number, 0}), false},
		"from nothing to something": {sizes(figure{"a", 0, milliseconds, 2}, figure{"a", 1, milliseconds, 2}), true},
	} {
		if got := c.report.broken(); got != c.broken {
			t.Errorf("%s: %v, want %v", name, got, c.broken)
		}
		if missed := strings.Contains(c.report.markdown(), "missed"); missed != c.broken {
			t.Errorf("%s: the page says that something was missed: %v", name, missed)
		}
	}
}
