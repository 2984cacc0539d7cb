package artifact

import (
	"sync"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/core/command"
)

// dumpShare is the dump's share of the total progress when a verification follows.
const dumpShare = 60

// part is told how many bytes are done of a part of the work.
type part func(done, total int64)

// share turns what a part is told into so many percent of the whole, which follow on from.
func share(progress Progress, stage string, from, percent int) part {
	return func(done, total int64) {
		progress(stage, from+int(int64(percent)*done/max(total, 1)), command.Bytes{Done: done, Total: total})
	}
}

// meter turns what went into a dump into bytes of the database. Those of a table are its size on disk; within a table, they
// follow the bytes of COPY text, up to that size.
type meter struct {
	mu      sync.Mutex
	weights map[string]int64 // by canonical name
	total   int64
	done    int64 // weight of finished tables
	table   int64 // weight of the current one
	bytes   int64 // of the current one
	tell    part
}

func newMeter(weights map[string]int64, tell part) *meter {
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

// rising keeps the percentage from falling, as it would where something is done again.
func rising(progress Progress) Progress {
	var mu sync.Mutex
	highest := 0
	return func(stage string, percent int, bytes command.Bytes) {
		mu.Lock()
		defer mu.Unlock()
		highest = max(highest, percent)
		progress(stage, highest, bytes)
	}
}
