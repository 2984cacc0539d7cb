package rehearsal_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/stage"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ended(at time.Time, schema string, breaks ...rehearsal.Break) *rehearsal.Rehearsal {
	return &rehearsal.Rehearsal{
		EndedAt: at, SchemaSHA256: schema, Breaks: operation.Encode(append([]rehearsal.Break{}, breaks...)),
	}
}

func TestWhatARehearsalLacks(t *testing.T) {
	one := rehearsal.Break{Kind: rehearsal.Extension, Object: "postgis", What: "the server does not have it", Remedy: "drop it"}
	for name, c := range map[string]struct {
		last *rehearsal.Rehearsal
		want string // empty: it permits the move
	}{
		"none":           {nil, "it has not been rehearsed"},
		"now":            {ended(noon, "a"), ""},
		"of last week":   {ended(noon.Add(-rehearsal.Valid), "a"), ""},
		"too old":        {ended(noon.Add(-rehearsal.Valid-time.Second), "a"), "its rehearsal of 2026-11-22 is older than 7 days"},
		"another schema": {ended(noon, "b"), "its schema has changed since its rehearsal of 2026-11-29"},
		"one break": {
			ended(noon, "a", one),
			"its rehearsal of 2026-11-29 has found what breaks: extension postgis: the server does not have it",
		},
		"two breaks": {
			ended(noon, "a", one, one),
			"its rehearsal of 2026-11-29 has found 2 things that break, such as: extension postgis: the server does not have it",
		},
	} {
		if got, err := rehearsal.Lacks(c.last, "a", noon); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	if got, err := rehearsal.Lacks(ended(noon, "b"), "", noon); err != nil || got != "" {
		t.Errorf("with a schema that nobody has asked for: %q, %v", got, err)
	}
	if _, err := rehearsal.Lacks(&rehearsal.Rehearsal{EndedAt: noon, SchemaSHA256: "a"}, "a", noon); err == nil {
		t.Error("breaks that nobody can read permit a move")
	}
}

func TestARehearsalHasAnEnd(t *testing.T) {
	in := rehearsal.Input{OrderedAt: noon}
	for late, want := range map[time.Duration]bool{time.Hour: false, 2 * time.Hour: false, 3 * time.Hour: true} {
		if got := in.Overdue(noon.Add(late)) != nil; got != want {
			t.Errorf("after %s: %t", late, got)
		}
	}
	in.SizeBytes = 1 << 40
	if late := in.Overdue(noon.Add(24 * time.Hour)); late != nil {
		t.Errorf("of a terabyte: %v", late)
	}
}

// What an agent says is never longer than what is stored, whatever it says.
func TestBreaksAreBounded(t *testing.T) {
	long := rehearsal.Break{
		Kind: "unheard of", Object: strings.Repeat("é", 400), What: strings.Repeat("w", 600), Remedy: "change it",
	}
	var list []rehearsal.Break
	for range rehearsal.MostBreaks + 7 {
		list = append(list, long)
	}
	var got rehearsal.Breaks
	if err := json.Unmarshal(operation.Encode(list), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(got); n != rehearsal.MostBreaks || got[n-1].What != "and 8 more breaks" {
		t.Errorf("%d breaks, the last one %+v", n, got[n-1])
	}
	b := got[0]
	if b.Kind != rehearsal.Statement || b.Object != strings.Repeat("é", 250) || len(b.What) != 500 || b.Remedy != "change it" {
		t.Errorf("%+v", b)
	}
	few := []rehearsal.Break{{Kind: rehearsal.Word, What: "a", Remedy: "b"}}
	if same := rehearsal.Bounded(few); !reflect.DeepEqual(same, few) {
		t.Errorf("%+v", same)
	}
}

func TestRestrictedWords(t *testing.T) {
	for _, c := range []struct{ from, to, want int }{{16, 16, 0}, {16, 17, 8}, {16, 18, 8}, {17, 18, 0}, {18, 16, 0}} {
		if got := rehearsal.Restricted(c.from, c.to); len(got) != c.want {
			t.Errorf("from %d to %d: %v", c.from, c.to, got)
		}
	}
}

// However a rehearsal ends that has begun, nothing of the copy is left; and only one that has come to its end says what it found.
func TestEveryEndRemovesTheCopy(t *testing.T) {
	kept := 0
	for s, row := range rehearsal.Machine.Table {
		for e, cell := range row {
			for _, effect := range cell.Effects {
				if effect == rehearsal.Keep {
					kept++
				}
			}
			leaves := cell.Next == stage.Failing || cell.Next == stage.Canceling || cell.Next == stage.Succeeded
			if removes := len(cell.Effects) > 0 && cell.Effects[0] == rehearsal.RemoveCopy; cell.Next != s && leaves != removes {
				t.Errorf("%s on %s: %v", s, e, cell)
			}
		}
	}
	if kept != 1 {
		t.Errorf("the result is kept by %d cells", kept)
	}
}
