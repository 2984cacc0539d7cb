package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/child"
	"github.com/pgherd/pgherd/core/id"
)

// pgDump is one run of pg_dump in an exported snapshot.
type pgDump struct {
	cfg      *Config
	database string
	snapshot string
	op       id.OperationID
	login    *dumpLogin
}

// run starts pg_dump and has consume read its output. When either fails, both end. The process list shows no secret: the
// password is in the child's environment, which only the agent's user can read.
func (d pgDump) run(ctx context.Context, consume func(io.Reader) error, args ...string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe to pg_dump: %w", err)
	}
	var complaint tail
	cmd := exec.CommandContext(ctx, d.cfg.PgDump, append(d.args(), args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = d.env(), in, &complaint, child.Attributes(d.cfg.DumpAs)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	ended := supervise(cmd, in)
	consumed := consume(out)
	if consumed != nil {
		stop()
	}
	err = errors.Join(out.Close(), <-ended)
	switch {
	case consumed != nil && !complaint.failed(err):
		return consumed
	case err != nil:
		return &pgDumpError{complaint: complaint.text(), err: err}
	default:
		return consumed
	}
}

// supervise starts the command and waits for it on a thread of its own, which must live as long as the child (see
// child.Attributes).
func supervise(cmd *exec.Cmd, in io.Closer) <-chan error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if closing := in.Close(); err == nil {
			err = errors.Join(cmd.Wait(), closing)
		}
		ended <- err
	}()
	return ended
}

func (d pgDump) args() []string {
	return []string{
		"--format=plain", "--no-password", "--no-subscriptions", "--no-tablespaces", "--encoding=UTF8", "--snapshot=" + d.snapshot,
		"--lock-wait-timeout=" + d.cfg.lockWait(),
	}
}

func (d pgDump) env() []string {
	return []string{
		"PGHOST=" + d.cfg.Host, "PGPORT=" + strconv.Itoa(d.cfg.Port), "PGUSER=" + d.login.name(), "PGPASSWORD=" + d.login.password,
		"PGDATABASE=" + d.database, "PGSSLMODE=" + d.cfg.SSLMode, "PGAPPNAME=" + sessionName(d.op), "PGOPTIONS=" + dumpOptions,
		"PGCONNECT_TIMEOUT=30", "LC_ALL=C", "PATH=" + os.Getenv("PATH"),
	}
}

// tail keeps the end of a child's error output.
type tail struct{ kept []byte }

const tailSize = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - tailSize; extra > 0 {
		t.kept = t.kept[extra:]
	}
	return len(p), nil
}

func (t *tail) text() string { return strings.TrimSpace(string(t.kept)) }

// failed reports whether pg_dump itself failed, so that a truncated dump is only a consequence.
func (t *tail) failed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() > 0 && strings.Contains(t.text(), "error:")
}
