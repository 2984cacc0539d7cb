package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Postgres is a cluster on this machine. Its methods are for one goroutine at a time.
type Postgres struct {
	options   Options
	port      int
	socketDir string
	password  string
	process   *process
	log       io.Closer
	limit     time.Duration // of a start
}

// Run makes the cluster where Dir has none, and starts it. When the context ends, the cluster is stopped in mode Fast.
func Run(ctx context.Context, o Options) (*Postgres, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p := &Postgres{options: o, port: o.Port, limit: StartLimit}
	p.awaitPredecessor(ctx)
	if o.Port != 0 {
		if err := CheckPort(o.Host, o.Port); err != nil {
			return nil, fmt.Errorf("PostgreSQL: %w", err)
		}
	}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Postgres) prepare(ctx context.Context) error {
	makeData := func() error { return initialize(ctx, p.options, p.options.Dir) }
	if p.options.TemplateDir != "" {
		makeData = func() error { return initializeFromTemplate(ctx, p.options) }
	}
	if err := makeData(); err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(p.options.Dir, passwordFile))
	if err != nil {
		return err
	}
	p.password = string(password)
	p.socketDir, err = SocketDir(filepath.Join(p.options.Dir, "socket"))
	return err
}

// freePortTries bounds how often a start looks for another free port when the one it found was taken meanwhile.
const freePortTries = 5

// Start starts a cluster that was stopped, killed or has crashed, on the same port, and returns when it takes connections, after
// StartLimit at the latest. When the context ends, the cluster is stopped in mode Fast.
func (p *Postgres) Start(ctx context.Context) error {
	if p.process != nil && p.process.running() {
		return errors.New("PostgreSQL runs already")
	}
	if p.port != 0 {
		return p.start(ctx, p.limit)
	}
	var inUse *PortInUseError
	for try := 1; ; try++ {
		var err error
		if p.port, err = FreePort(p.options.Host); err != nil {
			return err
		}
		if err = p.start(ctx, p.limit); !errors.As(err, &inUse) || try == freePortTries {
			return err
		}
	}
}

func (p *Postgres) start(ctx context.Context, within time.Duration) error {
	if err := CheckPort(p.options.Host, p.port); err != nil {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	if err := p.writeSettings(); err != nil {
		return err
	}
	out, err := p.openLog()
	if err != nil {
		return err
	}
	started, err := startProcess(spec{
		path:   p.options.Tools.Postgres,
		args:   []string{"-D", p.dataDir()},
		reads:  []string{filepath.Join(p.dataDir(), "PG_VERSION"), filepath.Join(p.socketDir, "s")},
		orphan: syscall.SIGINT,
		log:    out,
		start:  p.options.Start,
	})
	if err != nil {
		return errors.Join(err, p.closeLog())
	}
	p.process = started
	if err := started.untilReady(ctx, "PostgreSQL", within, p.ready, p.startFailure); err != nil {
		return errors.Join(err, p.Stop(context.WithoutCancel(ctx), Fast))
	}
	p.process.stopWith(ctx, fastSignal, StopLimit)
	return nil
}

func (p *Postgres) openLog() (io.Writer, error) {
	if p.options.Log != nil {
		return p.options.Log, nil
	}
	file, err := os.OpenFile(filepath.Join(p.options.Dir, "postgres.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err // p.log stays a nil interface
	}
	p.log = file
	return file, nil
}

func (p *Postgres) closeLog() error {
	if p.log == nil {
		return nil
	}
	err := p.log.Close()
	p.log = nil
	return err
}

// readyLine is the number, from 0, of the line of postmaster.pid that holds the status.
const readyLine = 7

// ready reports whether the file postmaster.pid of this very process says so, as pg_ctl does.
func (p *Postgres) ready(context.Context) bool {
	text, err := os.ReadFile(filepath.Join(p.dataDir(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) > readyLine && lines[0] == strconv.Itoa(p.Pid()) && strings.TrimSpace(lines[readyLine]) == "ready"
}

func (p *Postgres) startFailure() error {
	if p.process.tail.has("could not create any TCP/IP sockets") {
		return fmt.Errorf("PostgreSQL: %w", &PortInUseError{Address: p.Address()})
	}
	return fmt.Errorf("PostgreSQL did not start: %s", p.process.tail.lastError())
}

func (p *Postgres) dataDir() string { return filepath.Join(p.options.Dir, dataFolder) }

// Host is the loopback address that the cluster listens on.
func (p *Postgres) Host() string { return p.options.Host }

// Port stays the same over restarts.
func (p *Postgres) Port() int { return p.port }

// Address is host and port.
func (p *Postgres) Address() string { return net.JoinHostPort(p.options.Host, strconv.Itoa(p.port)) }

// SocketDir is the folder of the unix socket, which only the children's user and root may enter.
func (p *Postgres) SocketDir() string { return p.socketDir }

// Password is the superuser's.
func (p *Postgres) Password() string { return p.password }

// URL is the superuser's connection string for a database.
func (p *Postgres) URL(database string) string { return p.URLFor(Superuser, p.password, database) }

// URLFor is the connection string of a login, over loopback and without TLS.
func (p *Postgres) URLFor(login, password, database string) string {
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(login, password), Host: p.Address(), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return address.String()
}

// Pid is the process ID of the postmaster of the last start.
func (p *Postgres) Pid() int { return p.process.cmd.Process.Pid }

// Done is closed when the cluster of the last start has ended, for whatever reason.
func (p *Postgres) Done() <-chan struct{} { return p.process.done }

// Exit says how the cluster of the last start has ended, once Done is closed: "exit status 1", "signal: killed".
func (p *Postgres) Exit() string { return p.process.exit() }
