package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// Process is a child of this process.
type Process struct {
	Name string
	cmd  *exec.Cmd
	file string // where its log goes
	done chan struct{}
}

// launch starts a child in a place. It appends what it says to the file.
func launch(on Place, name, binary, logFile string, env []string, args ...string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, cmd: exec.Command(binary, args...), file: logFile, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, attributes()
	p.cmd.Env = append(env, on.Variables...)
	started := make(chan error, 1)
	go p.supervise(on, started)
	err = errors.Join(<-started, log.Close())
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// supervise keeps the thread that started the child: Linux sends the signal of a parent's death when that thread ends.
func (p *Process) supervise(on Place, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := on.start(p.cmd)
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // ProcessState tells how it ended
		close(p.done)
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Killed reports whether the process ended by SIGKILL.
func (p *Process) Killed() bool {
	if p.Running() {
		return false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// AwaitEnd waits until the process has ended, by itself or by a signal.
func (p *Process) AwaitEnd(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s goes on running: %w", p.Name, ctx.Err())
	}
}

// Kill ends the process with SIGKILL and returns when it is gone. One that has ended is no error.
func (p *Process) Kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.done
	return err
}

// Stop ends the process with SIGTERM, as a service manager does.
func (p *Process) Stop(ctx context.Context) error {
	return errors.Join(p.signal(syscall.SIGTERM), p.AwaitEnd(ctx))
}

// HangUp has it read its files again.
func (p *Process) HangUp() error { return p.signal(syscall.SIGHUP) }

// Freeze halts the process with SIGSTOP: whoever waits for it hangs. Thaw lets it go on.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

// Frozen reports whether the process is halted, by Freeze or by itself. It is always false where there is no /proc.
func (p *Process) Frozen() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(state, "T")
}

// Pid is the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Log returns what the process, and those before it in the same place, have said.
func (p *Process) Log() ([]byte, error) { return os.ReadFile(p.file) }

// tail is the end of the log, for an error.
func (p *Process) tail() string {
	const most = 2000
	text, err := p.Log()
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return string(text[max(0, len(text)-most):])
}
