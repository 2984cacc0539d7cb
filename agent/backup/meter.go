package backup

import (
	"sync"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
)

// meter turns what went into a dump into bytes of the database. Those of a table are its size on disk; within a table, they
// follow the bytes of COPY text, up to that size.
type meter struct {
	mu      sync.Mutex
	weights map[string]int64 // by canonical name
	total   int64
	done    int64 // weight of finished tables
	table   int64 // weight of the current one
	bytes   int64 // of the current one
	tell    jobs.Part
}

func newMeter(weights map[string]int64, tell jobs.Part) *meter {
	m := &meter{weights: weights, tell: tell}
	for _, w := range weights {
		m.total += w
	}
	return m
}

// begin notes that the rows of a table begin.
func (m *meter) begin(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += m.table
	m.table, m.bytes = m.weights[dumpsql.Canonical(name)], 0
}

// add notes bytes of the dump.
func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += int64(n)
	m.tell(m.done+min(m.bytes, m.table), m.total)
}
