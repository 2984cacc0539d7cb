package slowquery

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestOrders(t *testing.T) {
	for text, want := range map[string]Order{"total": ByTotal, "mean": ByMean, "calls": ByCalls} {
		if o, err := ParseOrder(text); o != want || err != nil {
			t.Errorf("%q: %s, %v", text, o, err)
		}
	}
	for _, text := range []string{"", "rows", "Total", "total ", "total,calls"} {
		if _, err := ParseOrder(text); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A list has the first in its order of all that may be shown, whatever order they come in.
func TestTop(t *testing.T) {
	key := map[Order]func(Statement) float64{
		ByTotal: func(s Statement) float64 { return s.TotalMs }, ByMean: func(s Statement) float64 { return s.MeanMs },
		ByCalls: func(s Statement) float64 { return float64(s.Calls) },
	}
	rapid.Check(t, func(t *rapid.T) {
		all := make([]Statement, rapid.IntRange(0, 3*Most).Draw(t, "statements"))
		figures, seen := rapid.IntRange(0, 20), 0
		for i := range all {
			all[i] = Statement{
				ID: fmt.Sprint(i), Text: rapid.SampledFrom([]string{"SELECT $1", "DISCARD ALL"}).Draw(t, "text"),
				Calls: int64(figures.Draw(t, "calls")), TotalMs: float64(figures.Draw(t, "total")), MeanMs: float64(figures.Draw(t, "mean")),
			}
			if all[i].Text == "SELECT $1" {
				seen++
			}
		}
		for _, o := range Orders {
			top := Top(all, o)
			if len(top) != min(seen, Most) {
				t.Fatalf("%d of %d", len(top), seen)
			}
			least := 21.0
			for _, s := range top {
				if s.Text != "SELECT $1" || key[o](s) > least {
					t.Fatalf("by %s: %+v", o, top)
				}
				least = key[o](s)
			}
			for _, s := range all {
				in := slices.ContainsFunc(top, func(x Statement) bool { return x.ID == s.ID })
				if s.Text == "SELECT $1" && !in && key[o](s) > least {
					t.Fatalf("by %s, %+v is missing", o, s)
				}
			}
			shuffled := rapid.Permutation(all).Draw(t, "shuffled")
			if !slices.Equal(Top(shuffled, o), top) {
				t.Fatalf("by %s: another list of the same", o)
			}
		}
	})
}
