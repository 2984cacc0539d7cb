package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
)

// replayOf is a server that replays.
type replayOf struct {
	program  string
	args     []string
	dir      string
	as       *syscall.Credential
	expected int64 // segments
	tell     func(percent int)
}

// origins are more than a server has, which has no more than databases that move to it at a time.
const origins = "1000"

// roomForOrigins has a server replay what others have followed: each of those commits names where it came from, and the replay
// ends at the first one that it has no room to note for. PostgreSQL 18 counts that apart from slots.
func roomForOrigins(data string) [][2]string {
	settings := [][2]string{{"max_replication_slots", origins}}
	version, _ := os.ReadFile(filepath.Join(data, "PG_VERSION")) // without it the server says so
	if pg.Major(string(version)) >= 18 {
		settings = append(settings, [2]string{"max_active_replication_origins", origins})
	}
	return settings
}

// running is one that was started.
type running struct {
	cmd          *exec.Cmd
	ready, ended chan struct{}
	found        *heard
	commits      *commits
}

func runReplay(o replayOf) (r *running, err error) {
	r = &running{cmd: exec.Command(o.program, o.args...), commits: &commits{}}
	r.found = newHeard(o.expected, nil, func(_ string, percent int, _ command.Bytes) { o.tell(percent) })
	if r.ready, r.ended, err = r.found.follow(r.cmd, o.dir, o.as, r.commits); err != nil {
		return nil, err
	}
	return r, nil
}

// await returns once it takes connections, or an error where it has ended before.
func (r *running) await(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-r.ended:
		return r.found.why()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cleanEnd bounds how long a server may take to write everything to its disk.
const cleanEnd = 30 * time.Minute

// stop ends it, and waits until it has written everything to its disk; without an error, it has. At the end of ctx it ends it at
// once.
func (r *running) stop(ctx context.Context) error {
	if r == nil {
		return nil
	}
	_ = r.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	select {
	case <-r.ended:
	case <-ctx.Done():
		_ = r.cmd.Process.Signal(syscall.SIGQUIT)
		<-r.ended
		return context.Cause(ctx)
	case <-time.After(cleanEnd):
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.ended
		return errors.New("the server does not end")
	}
	if !r.commits.isClean() {
		return errors.New("the server did not shut down cleanly")
	}
	return nil
}

func (r *running) lastCommit() time.Time {
	r.commits.mu.Lock()
	defer r.commits.mu.Unlock()
	return r.commits.last
}

// commits reads in a server's log which commit was replayed last, and whether it was shut down.
type commits struct {
	mu    sync.Mutex
	rest  []byte
	last  time.Time
	clean bool
}

// commitPattern is how it says that, with timezone = UTC.
var commitPattern = regexp.MustCompile(`last completed transaction was at log time ([-\d]+ [:\d]+(?:\.\d+)?)\+00`)

// longestLine bounds what is kept of a line.
const longestLine = 64 << 10

func (c *commits) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	for {
		advance, line, _ := bufio.ScanLines(c.rest, false)
		if advance == 0 {
			break
		}
		if m := commitPattern.FindSubmatch(line); m != nil {
			if at, err := time.Parse("2006-01-02 15:04:05.999999", string(m[1])); err == nil {
				c.last = at
			}
		}
		c.clean = c.clean || bytes.HasSuffix(line, []byte("database system is shut down"))
		c.rest = c.rest[advance:]
	}
	if len(c.rest) > longestLine {
		c.rest = nil
	}
	return len(p), nil
}

func (c *commits) isClean() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clean
}
