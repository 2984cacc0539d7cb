package jobs

import (
	"sync"

	"github.com/pgherd/pgherd/core/command"
)

// StageQueued is that of a job that waits for its turn or, if it makes a backup, for room on a disk.
const StageQueued = "queued"

// Part is told how many bytes are done of a part of a job.
type Part func(done, total int64)

// Share turns what a part is told into so many percent of the whole, which follow on from.
func Share(tell Tell, stage string, from, percent int) Part {
	return func(done, total int64) {
		tell(stage, from+int(int64(percent)*done/max(total, 1)), command.Bytes{Done: done, Total: total})
	}
}

// Rising keeps the percentage from falling, as it would where something is done again.
func Rising(tell Tell) Tell {
	var mu sync.Mutex
	highest := 0
	return func(stage string, percent int, bytes command.Bytes) {
		mu.Lock()
		defer mu.Unlock()
		highest = max(highest, percent)
		tell(stage, highest, bytes)
	}
}
