package resting

import (
	"testing"
	"time"
)

func TestWhoComesBack(t *testing.T) {
	r, now := New(nil, nil), time.Now()
	for i, c := range []struct {
		after time.Duration
		who   string
		back  bool
	}{
		{0, "a", false}, {0, "a", false}, {900 * time.Millisecond, "a", false}, {time.Second, "a", true},
		{1500 * time.Millisecond, "a", false}, {2 * time.Second, "b", false},
		{4 * time.Minute, "a", true}, {10 * time.Minute, "a", false},
	} {
		if got := r.comesBack(c.who, now.Add(c.after)); got != c.back {
			t.Errorf("%d: %t", i, got)
		}
	}
}
