package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// spec says how to start a child.
type spec struct {
	path    string
	args    []string
	reads   []string       // paths that the child must reach
	readAny bool           // may read the files of other users (see grants)
	orphan  syscall.Signal // what the child gets when the caller dies
	env     []string
	log     io.Writer
	start   func(*exec.Cmd) error // nil: (*exec.Cmd).Start
}

// process is a running child.
type process struct {
	name string
	cmd  *exec.Cmd
	tail *tail
	done chan struct{} // closed when the child has ended and err is set
	err  error
}

// startProcess starts a child in a process group of its own, so that a Ctrl-C in a terminal reaches the caller alone, which then
// stops its children in order.
func startProcess(s spec) (*process, error) {
	cmd, err := prepare(s)
	if err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(s.path), cmd: cmd, tail: &tail{}, done: make(chan struct{})}
	p.cmd.Env = append(childEnvironment(), s.env...)
	p.cmd.Dir = "/"
	out := io.Writer(p.tail)
	if s.log != nil {
		out = io.MultiWriter(p.tail, s.log)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.WaitDelay = time.Second // Sessions of a killed server hold its standard error a little longer.
	started := make(chan error)
	go p.supervise(s.start, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", s.path, err)
	}
	return p, nil
}

// supervise keeps the thread that started the child until the child has ended: Linux sends the signal of a parent's death when
// that thread ends, not when the process does.
func (p *process) supervise(start func(*exec.Cmd) error, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if start == nil {
		start = (*exec.Cmd).Start
	}
	err := start(p.cmd)
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// childEnvironment leaves out everything of the caller's: PG* variables would change what the programs do, and secrets in
// PGHERD_* are none of theirs.
func childEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// exit says how the child has ended, once done is closed.
func (p *process) exit() string { return p.cmd.ProcessState.String() }

// signal sends a signal to the child; a child that has ended is no error.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// signalAll sends a signal to the child and to what it started. Children of PostgreSQL lead sessions of their own, so a signal to
// the process group would not reach them.
func (p *process) signalAll(sig syscall.Signal) error {
	if !p.running() {
		return nil
	}
	offspring := descendants(p.cmd.Process.Pid)
	err := p.signal(sig)
	for _, pid := range offspring {
		if killErr := syscall.Kill(pid, sig); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
			err = errors.Join(err, killErr)
		}
	}
	return err
}

// untilReady asks until the child is ready, and fails where it ends before, or takes too long.
func (p *process) untilReady(
	ctx context.Context, what string, within time.Duration, ready func(context.Context) bool, ended func() error,
) error {
	limit, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ready(limit) {
		select {
		case <-p.done:
			return ended()
		case <-limit.Done():
			return fmt.Errorf("%s is not ready: %w", what, limit.Err())
		case <-tick.C:
		}
	}
	return nil
}

// wait waits for the child's end.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop asks the child to end, and kills it with all its children when it has not by the end of the context.
func (p *process) stop(ctx context.Context, ask syscall.Signal) error {
	err := p.signal(ask)
	if err == nil {
		err = p.wait(ctx)
	}
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("stop %s: %w", p.name, err), p.kill())
}

// kill ends the child and its children at once.
func (p *process) kill() error {
	err := p.signalAll(syscall.SIGKILL)
	<-p.done
	return err
}

// stopWith stops the child when the context ends.
func (p *process) stopWith(ctx context.Context, ask syscall.Signal, within time.Duration) {
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		_ = p.stop(limit, ask) // Nobody is left to tell; the child is gone either way.
	})
}
