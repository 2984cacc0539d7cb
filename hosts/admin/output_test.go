package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

var noon = time.Date(2026, time.January, 5, 12, 0, 0, 0, time.UTC)

func printed(o output) string {
	var text bytes.Buffer
	o.Print(terminal.Printer{Paper: terminal.Paper{To: &text, Width: lineWidth}, Now: noon})
	return text.String()
}

func TestWhatPeopleAreShown(t *testing.T) {
	at := noon.Add(-3 * time.Hour)
	shown := row{
		{"name", "shop"}, {"nothing", nil}, {"empty", ""}, {"at", at}, {"never", nil}, {"size", terminal.Size(1288490189)},
		{"used", usage[terminal.Size]{512, 20 << 30}}, {"routes", []string{"clone", "restore"}},
		{"list", table{{{"a", 1}, {"b", true}, {"c", nil}}}}, {"none", table{}},
	}
	want := `name:    shop
nothing: -
empty:   -
at:      2026-01-05T09:00:00Z (3h ago)
never:   -
size:    1.2 GiB
used:    512 B of 20 GiB
routes:  clone, restore
list:
  a  b
  1  true
none:
  none
`
	if got := printed(shown); got != strings.ReplaceAll(want, ": ", ":  ") {
		t.Errorf("%s", got)
	}
	raw := check.Must(json.Marshal(shown))(t)
	if want := `{"name":"shop","nothing":null,"empty":"","at":"2026-01-05T09:00:00Z","never":null,"size":1288490189,` +
		`"used":{"used":512,"quota":21474836480},"routes":["clone","restore"],` +
		`"list":[{"a":1,"b":true,"c":null}],"none":[]}`; string(raw) != want {
		t.Errorf("%s", raw)
	}
}

func TestATableIsFoldedWhereItDoesNotFit(t *testing.T) {
	id := strings.Repeat("f", 36)
	got := printed(table{
		{
			{"id", id}, {"name", strings.Repeat("n", 50)}, {"status", "active"}, {"at", noon},
			{"why", strings.Repeat("word ", 20)},
		},
		{{"id", id}, {"name", "short"}, {"status", "active"}, {"at", noon}, {"why", "short"}},
		{{"id", id}, {"name", "empty"}, {"status", nil}, {"at", nil}, {"why", ""}},
	})
	want := `id                                    name
  status  at                    why
` + id + "  " + strings.Repeat("n", 42) + `
                                      nnnnnnnn
  active  2026-01-05T12:00:00Z  word word word word word word word word word
                                word word word word word word word word word
                                word word
` + id + `  short
  active  2026-01-05T12:00:00Z  short
` + id + `  empty
`
	if got != want {
		t.Errorf("%s", got)
	}
	role := "pgh_" + strings.Repeat("f", 32) + "_gro"
	for _, name := range []string{role, "restore_" + id} {
		shown := printed(table{{{"id", id}, {"role", name}, {"why", strings.Repeat("word ", 20)}}})
		if !strings.Contains(shown, name) {
			t.Errorf("%s is broken:\n%s", name, shown)
		}
	}
	if got := printed(table{{{"id", id}, {"name", "n"}}}); got != "id"+strings.Repeat(" ", 36)+"name\n"+id+"  n\n" {
		t.Errorf("%s", got)
	}
	if got := printed(table{}.only("id")); got != "none\n" {
		t.Errorf("%s", got)
	}
}

// Whatever the cells are, no line is too wide, none of their text is lost, and nothing in it moves the cursor.
func TestTablesFitTheTerminal(t *testing.T) {
	cell := rapid.OneOf(rapid.String(), rapid.StringN(30, 300, -1), rapid.StringMatching(`[a-z0-9 -]{0,200}`),
		rapid.SampledFrom([]string{"\x1b[2J\r\n\a", "\u202eevil\u2066", "漢字漢字", "\x9b1m", "é\u0301"}))
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(cell, 1, 8).Draw(t, "cells")
		var r row
		var all strings.Builder
		for i, c := range cells {
			name, shown := string(rune('a'+i)), terminal.Visible(c)
			r = append(r, field{name, c})
			if shown != "" && shown != terminal.NoValue || i == 0 {
				all.WriteString(name + strings.Repeat(shown, 2))
			}
		}
		got := printed(table{r, r})
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if terminal.Columns(line) > lineWidth {
				t.Fatalf("%d columns: %q", terminal.Columns(line), line)
			}
			if !utf8.ValidString(line) || terminal.Visible(line) != line {
				t.Fatalf("unescaped: %q", line)
			}
		}
		if letters(got) != letters(all.String()) {
			t.Fatalf("%q lost some of %q", got, all.String())
		}
	})
}

// letters are the characters of a text in order of their codes, without spaces and "-", for which a line may be left out.
func letters(text string) string {
	list := []rune(strings.ReplaceAll(strings.Join(strings.Fields(text), ""), terminal.NoValue, ""))
	slices.Sort(list)
	return string(list)
}

func TestErrorsAreVisible(t *testing.T) {
	cmd, refused := &cobra.Command{Use: "top"}, errors.New("role \x1b[2J is in the way\nand so is \u202e")
	cmd.AddCommand(&cobra.Command{Use: "do", RunE: func(*cobra.Command, []string) error { return refused }})
	escapeErrors(cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"do"})
	if err := cmd.Execute(); !errors.Is(err, refused) || err.Error() != `role \x1b[2J is in the way`+"\n"+`and so is \u202e` {
		t.Errorf("%q", err)
	}
}

func TestSizesAndAges(t *testing.T) {
	for n, want := range map[terminal.Size]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 20 << 30: "20 GiB", 1288490189: "1.2 GiB", 3 << 41: "6 TiB", 1<<30 - 1: "1 GiB",
	} {
		if n.String() != want {
			t.Errorf("%d: %s, want %s", n, n, want)
		}
	}
	for ago, want := range map[time.Duration]string{
		0: "0s ago", 59 * time.Second: "59s ago", time.Minute: "1m ago", 47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago",
		-90 * time.Minute: "in 2h",
	} {
		if got := terminal.Age(noon.Add(-ago), noon); got != want {
			t.Errorf("%s: %s, want %s", ago, got, want)
		}
	}
}
