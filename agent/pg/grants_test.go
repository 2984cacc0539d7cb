package pg_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/agent/pg"
)

func TestGrantsInOrder(t *testing.T) {
	one := []string{"SELECT"}
	both := []string{"SELECT", "UPDATE"}
	for name, c := range map[string]struct {
		list                []pg.Grant
		ordered, groundless []string // grantees
	}{
		"none":         {},
		"of the owner": {[]pg.Grant{{"", "b", one, false}, {"", "a", one, true}}, []string{"b", "a"}, nil},
		"turned round": {[]pg.Grant{{"b", "c", one, false}, {"a", "b", one, true}, {"", "a", one, true}},
			[]string{"a", "b", "c"}, nil},
		"without option": {[]pg.Grant{{"", "a", one, false}, {"a", "b", one, false}}, []string{"a"}, []string{"b"}},
		"of a part":      {[]pg.Grant{{"", "a", one, true}, {"a", "b", both, false}}, []string{"a"}, []string{"b"}},
		"option by another": {[]pg.Grant{{"a", "b", one, false}, {"", "a", one, true}, {"", "a", one, false}},
			[]string{"a", "a", "b"}, nil},
		"of one another": {[]pg.Grant{{"b", "a", one, true}, {"a", "b", one, true}}, nil, []string{"a", "b"}},
	} {
		ordered, groundless := pg.InOrder(c.list, func(g pg.Grant) pg.Grant { return g })
		if got := grantees(ordered); !slices.Equal(got, c.ordered) {
			t.Errorf("%s: in order %v, want %v", name, got, c.ordered)
		}
		if got := grantees(groundless); !slices.Equal(got, c.groundless) {
			t.Errorf("%s: groundless %v, want %v", name, got, c.groundless)
		}
	}
}

func grantees(list []pg.Grant) (names []string) {
	for _, g := range list {
		names = append(names, g.Grantee)
	}
	return names
}
