// Package repeat decides which failures are worth a line in a log when something fails again and again: the first, and then one
// after growing pauses, with how many came between. So a log neither fills while a server is away, nor falls silent about it.
package repeat

import (
	"strings"
	"sync"
	"time"
)

const (
	// first is the pause after the first line, and most the longest one.
	first = time.Minute
	most  = time.Hour
	// maxKeys bounds what is remembered. Beyond that all is forgotten, and each failure is a first one again.
	maxKeys = 10_000
)

// Memory remembers what has failed of late. It is safe for concurrent use.
type Memory struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*series
}

// series is the failures of one thing.
type series struct {
	since, line, last time.Time
	pause             time.Duration // after the last line
	held, all         int
}

// New makes an empty memory.
func New(now func() time.Time) *Memory { return &Memory{now: now, known: map[string]*series{}} }

// Failed notes a failure of what key names. It reports whether that is worth a line, and how many failures came since the line
// before that were not.
func (m *Memory) Failed(key string) (worth bool, held int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	s := m.known[key]
	if s == nil || s.over(now) {
		if s == nil && len(m.known) >= maxKeys {
			m.makeRoom(now)
		}
		m.known[key] = &series{since: now, line: now, last: now, pause: first, all: 1}
		return true, 0
	}
	s.last = now
	s.all++
	if now.Sub(s.line) < s.pause {
		s.held++
		return false, 0
	}
	held, s.held, s.line, s.pause = s.held, 0, now, min(2*s.pause, most)
	return true, held
}

// over reports whether so much time has passed without a failure that the next one is another matter.
func (s *series) over(now time.Time) bool { return now.Sub(s.last) > 2*s.pause }

func (m *Memory) makeRoom(now time.Time) {
	for key, s := range m.known {
		if s.over(now) {
			delete(m.known, key)
		}
	}
	if len(m.known) >= maxKeys {
		clear(m.known)
	}
}

// EndedAll forgets whatever has a key that begins so, of what works again.
func (m *Memory) EndedAll(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.known {
		if strings.HasPrefix(key, prefix) {
			delete(m.known, key)
		}
	}
}

// Ended forgets what key names, which works again. It returns since when and how often it had failed; 0 where it had not.
func (m *Memory) Ended(key string) (since time.Time, times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.known[key]
	if s == nil {
		return time.Time{}, 0
	}
	delete(m.known, key)
	return s.since, s.all
}
