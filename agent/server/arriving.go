package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// arriving is what a client sends, for as long as it sends chunk after chunk in time. Close ends a read that waits.
type arriving struct {
	body    io.Reader
	control *http.ResponseController
	within  time.Duration
	due     int64 // until the next deadline
	late    bool  // a deadline was missed

	mu     sync.Mutex
	closed bool
}

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	if a.due <= 0 && !a.extend() {
		return 0, io.ErrClosedPipe
	}
	n, err := a.body.Read(p)
	a.due -= int64(n)
	a.late = a.late || errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

func (a *arriving) extend() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.due = arrivalChunk
	now := time.Now()
	_ = a.control.SetReadDeadline(now.Add(a.within)) // supported by every connection of ours
	_ = a.control.SetWriteDeadline(now.Add(a.within + answerTime))
	return true
}

// Close implements io.Closer.
func (a *arriving) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.control.SetReadDeadline(time.Now())
}

// settle gives the rest of the request, and the answer, the time that others have. Where the rest was not in time, or is not
// wanted, the answer does not wait for it.
func (a *arriving) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if !a.closed && !a.late {
		_ = a.control.SetReadDeadline(now.Add(bodyTime))
	}
	_ = a.control.SetWriteDeadline(now.Add(answerTime))
}
