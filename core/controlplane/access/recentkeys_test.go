package access

import (
	"net/netip"
	"testing"
	"time"
)

// TestRecentKeys plays small histories on a memory of three keys and says which keys are recent afterwards.
func TestRecentKeys(t *testing.T) {
	type event struct {
		minute int
		key    byte // 0 forgets what key 1 was
	}
	for name, c := range map[string]struct {
		events []event
		minute int
		recent string // of the keys 1 to 4
	}{
		"nothing":                       {nil, 0, ""},
		"one":                           {[]event{{0, 1}}, 0, "1"},
		"for an hour":                   {[]event{{0, 1}}, 60, "1"},
		"not longer":                    {[]event{{0, 1}}, 61, ""},
		"an hour since the last time":   {[]event{{0, 1}, {50, 1}}, 110, "1"},
		"as many as there is room for":  {[]event{{0, 1}, {0, 2}, {0, 3}}, 0, "123"},
		"the oldest goes":               {[]event{{0, 1}, {0, 2}, {0, 3}, {0, 4}}, 0, "234"},
		"which is who came least":       {[]event{{0, 1}, {0, 2}, {1, 1}, {1, 3}, {2, 4}}, 2, "134"},
		"an old one makes room":         {[]event{{0, 1}, {59, 2}, {60, 3}, {61, 4}}, 61, "234"},
		"an invalid one is forgotten":   {[]event{{0, 1}, {0, 2}, {0, 0}}, 0, "2"},
		"and makes room":                {[]event{{0, 1}, {0, 2}, {0, 3}, {0, 0}, {0, 4}}, 0, "234"},
		"and may come again":            {[]event{{0, 1}, {0, 0}, {1, 1}}, 1, "1"},
		"forgetting an unknown is fine": {[]event{{0, 0}, {0, 2}}, 0, "2"},
	} {
		start := time.Unix(1_700_000_000, 0)
		r := newRecentKeys(3)
		for _, e := range c.events {
			if e.key == 0 {
				r.forget([32]byte{1})
				continue
			}
			r.remember([32]byte{e.key}, "", start.Add(time.Duration(e.minute)*time.Minute))
		}
		got := ""
		for key := byte(1); key <= 4; key++ {
			if r.has([32]byte{key}, netip.Addr{}, start.Add(time.Duration(c.minute)*time.Minute)) {
				got += string('0' + rune(key))
			}
		}
		if got != c.recent || len(r.by) != r.order.Len() || len(r.by) > 3 {
			t.Errorf("%s: %q are recent, want %q; %d and %d are remembered", name, got, c.recent, len(r.by), r.order.Len())
		}
	}
}

// A key is recent at the addresses where it was good when it was last found valid.
func TestRecentKeysHaveNetworks(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	inside, outside := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.7")
	r := newRecentKeys(3)
	key := [32]byte{1}
	check := func(when string, has, foreign bool) {
		t.Helper()
		if !r.has(key, inside, now) || r.has(key, outside, now) != has || r.foreign(key, inside) || r.foreign(key, outside) != foreign {
			t.Errorf("%s: has %v, foreign %v", when, r.has(key, outside, now), r.foreign(key, outside))
		}
	}
	if r.foreign(key, outside) {
		t.Error("an unknown key is foreign")
	}
	r.remember(key, "10.0.0.0/8", now)
	check("in one network", false, true)
	r.remember(key, "", now)
	check("anywhere", true, false)
}
