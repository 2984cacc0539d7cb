package cluster

import (
	"strings"
	"sync"
)

// tail keeps the end of what a child wrote, for the error that says why it ended.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8 << 10

// Write never fails, so that a child never waits for its log.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > tailBytes {
		t.text = append([]byte(nil), t.text[len(t.text)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) has(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Contains(string(t.text), text)
}

// lastError is the last line that tells of a failure, from the word that says so on, or else the last line. What stands before
// is a time and a process ID: without them the same failure is the same text.
func (t *tail) lastError() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		for _, mark := range []string{"FATAL", "PANIC", "ERROR", "error:"} {
			if at := strings.Index(lines[i], mark); at >= 0 {
				return lines[i][at:]
			}
		}
	}
	return lines[len(lines)-1]
}
