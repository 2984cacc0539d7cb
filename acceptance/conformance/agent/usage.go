package agent

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// useOfDatabases: a new database comes up by itself; what was answered comes again until its end is named, and then no more; time
// that was answered once is in no other stretch.
func useOfDatabases(t *testing.T, s Stand) {
	_, before := seenAfter(t, s, command.UsageFromStart)
	spec, _ := made(t, s)
	began := time.Now()
	var first []usage.Stretch
	for seenOf(first, spec.DatabaseID) == 0 {
		time.Sleep(100 * time.Millisecond)
		if first, _ = seenAfter(t, s, before); time.Since(began) > time.Minute {
			t.Fatal("what a new database uses does not come up")
		}
	}
	again, after := seenAfter(t, s, before)
	if seen := seenOf(again, spec.DatabaseID); seen < seenOf(first, spec.DatabaseID) {
		t.Errorf("%d ms came again as %d", seenOf(first, spec.DatabaseID), seen)
	}
	for _, stretch := range again {
		if stretch.EndedMs < 0 || stretch.LastedMs <= 0 || stretch.Name == "" {
			t.Errorf("a stretch is %+v", stretch)
		}
	}
	later, _ := seenAfter(t, s, after)
	for _, stretch := range later {
		for _, one := range again {
			if one.Name == stretch.Name {
				t.Errorf("%s came after its end was named", one.Name)
			}
		}
	}
	passed := time.Since(began).Milliseconds() + 100 // it may have been made a bit before that
	if seen := seenOf(again, spec.DatabaseID) + seenOf(later, spec.DatabaseID); seen > passed {
		t.Errorf("in %d ms it was seen for %d", passed, seen)
	}
}

// seenOf is for how long a database was seen, in milliseconds.
func seenOf(list []usage.Stretch, db id.DatabaseID) (ms int64) {
	for _, stretch := range list {
		for _, d := range stretch.Databases {
			if d.DatabaseID == db {
				ms += d.SeenMs
			}
		}
	}
	return ms
}

// seenAfter asks for all parts.
func seenAfter(t *testing.T, s Stand, after string) (list []usage.Stretch, next string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for more := true; more; {
		used := must(ports.Ask(ctx, s.Agent, command.AskUsage{After: after}))(t)
		list, after, more = append(list, used.Stretches...), used.Next, used.More
	}
	return list, after
}
