package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// child is a program of the service that runs until it is stopped.
type child struct {
	name    string
	program string
	args    []string
	env     []string
	logFile string
	ready   func() bool

	cmd  *exec.Cmd
	done chan struct{}
}

// childTime bounds a start and a stop.
const childTime = 60 * time.Second

// start starts the program and waits until it is ready. One that runs already is left alone.
func (c *child) start(more ...string) error {
	if c.running() {
		return nil
	}
	out, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the program has its own
	c.cmd = exec.Command(c.program, append(c.args, more...)...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = append(os.Environ(), c.env...), out, out
	if c.done, err = startTied(c.cmd); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	for until := time.Now().Add(childTime); !c.ready(); time.Sleep(20 * time.Millisecond) {
		if !c.running() || time.Now().After(until) {
			return fmt.Errorf("%s is not ready; it says:\n%s", c.name, c.lastWords())
		}
	}
	return nil
}

func (c *child) running() bool {
	if c.done == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// stop asks the program to stop, and waits.
func (c *child) stop() error {
	if !c.running() {
		return nil
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(childTime):
		_ = c.cmd.Process.Kill() // it shows below
		<-c.done
		return fmt.Errorf("%s did not stop; it says:\n%s", c.name, c.lastWords())
	}
}

// lastWords is the end of what the program wrote.
func (c *child) lastWords() string {
	text, err := os.ReadFile(c.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// run runs a program to its end and returns what it wrote to standard output.
func run(dir, program string, env []string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return out, fmt.Errorf("%s %v: %w: %s", filepath.Base(program), args, err, failed.Stderr)
	}
	return out, err
}
