package agent

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// sizesOfDatabases: a new database comes up after a position that was named before, in time, and an old position again.
func sizesOfDatabases(t *testing.T, s Stand) {
	_, before := changedSizes(t, s, command.StorageFromStart)
	spec, _ := made(t, s)
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		sizes, _ := changedSizes(t, s, before)
		if bytes, known := sizes[spec.DatabaseID]; known {
			if bytes < 1<<20 {
				t.Errorf("an empty database of PostgreSQL has some megabytes, not %d bytes", bytes)
			}
			break
		}
		if time.Now().After(until) {
			t.Fatal("the size of a new database does not come up")
		}
	}
	for _, after := range []string{before, command.StorageFromStart, "another.7"} {
		if sizes, _ := changedSizes(t, s, after); sizes[spec.DatabaseID] == 0 {
			t.Errorf("after %s the database is missing", after)
		}
	}
}

// changedSizes asks for all parts.
func changedSizes(t *testing.T, s Stand, after string) (sizes map[id.DatabaseID]int64, next string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sizes = map[id.DatabaseID]int64{}
	for more := true; more; {
		used := must(ports.Ask(ctx, s.Agent, command.StorageUse{After: after}))(t)
		for _, d := range used.Databases {
			sizes[d.DatabaseID] = d.Bytes
		}
		after, more = used.Next, used.More
	}
	return sizes, after
}
