package drill

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// marks are those of a database at some times before noon, in hours.
func marks(hours ...float64) (list []Canary) {
	for i, h := range hours {
		c := Canary{At: ago(time.Duration(h * float64(time.Hour))), OID: 7, Changes: int64(i), Counted: ago(1000 * time.Hour)}
		c.SameUntil = c.At.Add(-time.Hour)
		var before *Canary
		if i > 0 {
			before = &list[i-1]
		}
		c.Digest = c.Sum("d", before)
		list = append(list, c)
	}
	return list
}

func TestOfWhichMomentMarksAre(t *testing.T) {
	all := marks(9, 8, 7, 5, 3, 1)
	altered, other := slices.Clone(all), slices.Clone(all)
	altered[1].Changes++
	other[2].Changes++
	for i := 2; i < len(other); i++ {
		other[i].Digest = other[i].Sum("d", &other[i-1])
	}
	at := ago(4 * time.Hour)
	for name, c := range map[string]struct {
		live, had []Canary
		at        time.Time
		want      string
	}{
		"that moment":                  {all, all[:4], at, ""},
		"none":                         {nil, nil, at, ""},
		"none before":                  {all[4:], nil, at, ""},
		"old ones are forgotten":       {all[2:], all[:4], at, ""},
		"all are forgotten":            {nil, all[:4], at, ""},
		"at the very moment":           {all, all[:4], all[3].At, ""},
		"it was committed after that":  {all, all[:3], all[3].At, ""},
		"later":                        {all, all[:5], at, "later"},
		"earlier":                      {all, all[:3], at, "earlier"},
		"nothing was had back":         {all, nil, at, "earlier"},
		"one is missing in between":    {all, slices.Concat(all[:2], all[3:4]), at, "does not follow"},
		"the first is missing":         {all, all[1:4], at, "earlier"},
		"one is altered":               {all, altered[:4], at, "does not follow"},
		"the ledger's own is altered":  {altered, all[:4], at, "the server's ledger"},
		"those of another history":     {all, other[:4], at, "does not have"},
		"one that the server has not":  {slices.Concat(all[:3], all[4:]), all[:4], at, "does not follow"},
		"the last was never committed": {all[:3], all[:4], at, "does not have"},
	} {
		why := Marks{"d", c.live, c.had}.Compare(c.at)
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
	if (Marks{"other", all, all[:4]}).Compare(at) == "" {
		t.Error("those of another database passed")
	}
}

func TestWhatIsKnownToBeUnchanged(t *testing.T) {
	all := marks(9, 5, 1)
	for name, c := range map[string]struct {
		marks            []Canary
		looked, from, to float64
		want             bool
	}{
		"between two marks":              {all, 0, 8, 6.5, true},
		"longer than it was looked at":   {all, 0, 8, 6, false},
		"over a mark":                    {all, 0, 8, 4, false},
		"before the first":               {all, 0, 10, 8, false},
		"since the last":                 {all, 0, 1, 0.5, true},
		"nobody has looked since":        {all, 1, 1, 0.5, false},
		"counted only after it was seen": {all, 0, 1, 0.01, false},
		"no mark":                        {nil, 0, 8, 6, false},
	} {
		hours := func(h float64) time.Time { return ago(time.Duration(h * float64(time.Hour))) }
		if got := Unchanged(c.marks, hours(c.looked), hours(c.from), hours(c.to)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
