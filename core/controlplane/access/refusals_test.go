package access

import (
	"fmt"
	"testing"
	"time"
)

// TestRefusals plays small histories on a memory of three addresses and says which are refused from memory afterwards.
func TestRefusals(t *testing.T) {
	type event struct{ at, source, until int }
	for name, c := range map[string]struct {
		events []event
		at     int
		shut   string // of the addresses 1 to 5
	}{
		"nothing":                         {nil, 0, ""},
		"until the end":                   {[]event{{0, 1, 2}}, 1, "1"},
		"not longer":                      {[]event{{0, 1, 2}}, 2, ""},
		"as many as there is room for":    {[]event{{0, 1, 9}, {0, 2, 9}, {0, 3, 9}}, 0, "123"},
		"one more is not remembered":      {[]event{{0, 1, 9}, {0, 2, 9}, {0, 3, 9}, {0, 4, 9}}, 0, "123"},
		"until one of them has ended":     {[]event{{0, 1, 2}, {0, 2, 9}, {0, 3, 9}, {2, 4, 9}}, 2, "234"},
		"those that ended make room":      {[]event{{0, 1, 1}, {0, 2, 2}, {0, 3, 9}, {2, 4, 9}, {2, 5, 9}}, 2, "345"},
		"once the first has ended too":    {[]event{{0, 1, 3}, {0, 2, 1}, {0, 3, 9}, {2, 4, 9}, {3, 5, 9}}, 3, "35"},
		"again after its end":             {[]event{{0, 1, 1}, {2, 1, 4}}, 3, "1"},
		"two requests at once":            {[]event{{0, 1, 1}, {0, 1, 3}}, 2, "1"},
		"the later one is stored first":   {[]event{{0, 1, 3}, {0, 1, 2}, {2, 2, 9}}, 2, "2"},
		"an old end takes no new one out": {[]event{{0, 1, 1}, {0, 1, 5}, {2, 2, 9}}, 4, "12"},
	} {
		start := time.Unix(1_700_000_000, 0)
		at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
		r := newRefusals(3)
		for _, e := range c.events {
			r.remember(fmt.Sprint(e.source), at(e.until), at(e.at))
		}
		got := ""
		for source := 1; source <= 5; source++ {
			if _, shut := r.until(fmt.Sprint(source), at(c.at)); shut {
				got += fmt.Sprint(source)
			}
		}
		if got != c.shut || len(r.by) > 3 {
			t.Errorf("%s: %q are refused, want %q; %d are remembered", name, got, c.shut, len(r.by))
		}
	}
}

// A flood from more addresses than are remembered costs about as much for each refusal as one from few: valid keys wait for the
// same lock. Each address is remembered for two seconds, and one ends every 200 µs. Looking at all of them would cost 1,000 times
// as much.
func TestAFloodOfAddressesDoesNotSlowRefusalsDown(t *testing.T) {
	flood := func(r *refusals) time.Duration {
		began, now := time.Now(), time.Unix(1_700_000_000, 0)
		for range 50_000 {
			now = now.Add(20 * time.Microsecond)
			r.remember(now.String(), now.Add(2*time.Second), now)
		}
		if len(r.by) > r.most {
			t.Errorf("%d addresses are remembered", len(r.by))
		}
		return time.Since(began)
	}
	few, many := flood(newRefusals(maxRefusals/1000)), flood(newRefusals(maxRefusals))
	if many > 50*few {
		t.Errorf("50,000 refusals took %v, and with few addresses %v", many, few)
	}
}
