package copies

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/command"
)

// However many policies there are, the report has room for what is said of them.
func TestNotesOfALoadAreBounded(t *testing.T) {
	for dropped, want := range map[int]string{
		command.MostNotes:     "policy p99 was left out: the database has none of its roles",
		command.MostNotes + 7: "and so were 8 more policies",
	} {
		var names []string
		for i := range dropped {
			names = append(names, fmt.Sprint("p", i))
		}
		if got := notes(names); len(got) != command.MostNotes || got[len(got)-1] != want {
			t.Errorf("of %d: %d notes, the last %q", dropped, len(got), got[len(got)-1])
		}
	}
}
