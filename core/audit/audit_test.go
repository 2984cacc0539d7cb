package audit

import (
	"maps"
	"testing"
)

func TestChanges(t *testing.T) {
	before := Details{"plan": "pro", "same": "1", "empty": "", "gone": "x", "filled": ""}
	after := Details{"plan": "free", "same": "1", "empty": "", "filled": "y", "new": "z"}
	want := Details{"plan": "pro -> free", "gone": "x -> none", "filled": "none -> y", "new": "none -> z"}
	if got := Changes(before, after); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := Changes(before, before); len(got) != 0 {
		t.Errorf("nothing changed, and got %v", got)
	}
}
