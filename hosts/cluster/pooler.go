package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"syscall"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// PoolerOptions say what PgBouncer to run. Ini, Host and Port must be set.
type PoolerOptions struct {
	// Ini is the path of the configuration file. The caller writes it, and everything that it names; where the caller is root,
	// PgBouncer may read files of other users, but writes only in folders given to its user with Own.
	Ini string
	// Host and Port are what the file says in listen_addr and listen_port: the place to wait for.
	Host string
	Port int
	// Tools are found on the machine when they are left out.
	Tools toolchain.Tools
	// Env holds more variables for PgBouncer, as NAME=value.
	Env []string
	// Log gets what PgBouncer writes to standard error. It may be nil.
	Log io.Writer
	// Start starts the process, as that of Options does.
	Start func(*exec.Cmd) error
}

// Pooler is a PgBouncer on this machine. Its methods are for one goroutine at a time.
type Pooler struct {
	options PoolerOptions
	process *process
}

// RunPooler starts PgBouncer. When the context ends, PgBouncer is stopped.
func RunPooler(ctx context.Context, o PoolerOptions) (*Pooler, error) {
	if o.Tools == (toolchain.Tools{}) {
		var err error
		if o.Tools, err = toolchain.Find(); err != nil {
			return nil, err
		}
	}
	p := &Pooler{options: o}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// givesBack has the C library give larger pieces of memory back to the system when they are free, as PgBouncer's unit does.
var givesBack = []string{"MALLOC_MMAP_THRESHOLD_=65536", "MALLOC_TRIM_THRESHOLD_=1048576"}

// Start starts a PgBouncer that was stopped, killed or has crashed, and returns when it takes connections.
func (p *Pooler) Start(ctx context.Context) error {
	if p.process != nil && p.process.running() {
		return errors.New("PgBouncer runs already")
	}
	if err := awaitPort(ctx, p.options.Host, p.options.Port); err != nil {
		return fmt.Errorf("PgBouncer: %w", err)
	}
	started, err := startProcess(spec{
		path: p.options.Tools.PgBouncer, args: []string{p.options.Ini}, reads: []string{p.options.Ini}, readAny: true,
		orphan: poolerStopSignal, env: slices.Concat(givesBack, p.options.Env), log: p.options.Log,
		start: p.options.Start,
	})
	if err != nil {
		return err
	}
	p.process = started
	if err := started.untilReady(ctx, "PgBouncer", StartLimit, p.answers, p.startFailure); err != nil {
		return errors.Join(err, p.process.kill())
	}
	p.process.stopWith(ctx, poolerStopSignal, StopLimit)
	return nil
}

func (p *Pooler) startFailure() error {
	return fmt.Errorf("PgBouncer did not start: %s", p.process.tail.lastError())
}

func (p *Pooler) answers(ctx context.Context) bool {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", p.Address())
	if err != nil {
		return false
	}
	_ = connection.Close()
	return p.process.running()
}

// poolerStopSignal ends PgBouncer at once; its other stop signals wait for clients or servers.
const poolerStopSignal = syscall.SIGQUIT

// Stop ends PgBouncer and with it all its connections.
func (p *Pooler) Stop(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, StopLimit)
	defer cancel()
	return p.process.stop(limit, poolerStopSignal)
}

// Restart stops PgBouncer and starts it again.
func (p *Pooler) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Kill ends PgBouncer with SIGKILL.
func (p *Pooler) Kill() error { return p.process.kill() }

// Freeze halts PgBouncer with SIGSTOP: connections hang, none is refused. Thaw lets it go on.
func (p *Pooler) Freeze() error { return p.process.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Pooler) Thaw() error { return p.process.signal(syscall.SIGCONT) }

// Address is host and port.
func (p *Pooler) Address() string {
	return net.JoinHostPort(p.options.Host, strconv.Itoa(p.options.Port))
}

// Pid is the process ID of the last start.
func (p *Pooler) Pid() int { return p.process.cmd.Process.Pid }

// Done is closed when the PgBouncer of the last start has ended, for whatever reason.
func (p *Pooler) Done() <-chan struct{} { return p.process.done }

// Exit says how the PgBouncer of the last start has ended, once Done is closed: "exit status 1", "signal: killed".
func (p *Pooler) Exit() string { return p.process.exit() }
