package dev

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/fault"
)

// report tells the terminal and the log what becomes of a child.
type report struct {
	name    string
	logFile string
	out     io.Writer
	log     *zap.Logger
}

// ended is told each time: when a child dies again and again, the pauses keep the lines apart.
func (r report) ended(how string, pause time.Duration) {
	r.log.Warn("a child has ended by itself", zap.String("exit", how), zap.Duration("pause", pause))
	when := ""
	if pause > 0 {
		when = " in " + pause.String()
	}
	fmt.Fprintf(r.out, "%s has ended (%s); it is started again%s. Its log is %s\n", r.name, how, when, r.logFile)
}

// failed is told on the terminal the first, second, fourth, eighth ... time that a start fails for the same reason.
func (r report) failed(err error, times int, pause time.Duration) {
	r.log.Warn("a child could not be started", zap.Int("times", times), zap.Duration("pause", pause), zap.Error(err))
	if times&(times-1) != 0 {
		return
	}
	count := ""
	if times > 1 {
		count = fmt.Sprintf(" (%d times now)", times)
	}
	reason := strings.TrimPrefix(fault.Line(err), r.name+": ")
	fmt.Fprintf(r.out, "%s cannot be started: %s%s; it is tried again in %s\n", r.name, reason, count, pause)
}

func (r report) works() {
	r.log.Info("a child runs again")
	fmt.Fprintf(r.out, "%s runs again\n", r.name)
}

// terminal takes lines from several goroutines, each whole.
type terminal struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(p)
}
