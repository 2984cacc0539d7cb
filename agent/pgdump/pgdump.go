// Package pgdump runs pg_dump in one snapshot of a database, under a login made for that one dump, while nobody can write a table
// anew.
package pgdump

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

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/child"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/id"
)

// Tool is the program pg_dump, and how it is run.
type Tool struct {
	Path string // of pg_dump 16 or later
	// As is the system user that it runs as, for an agent that runs as root; nil: the agent's own.
	As       *syscall.Credential
	LockWait time.Duration // how long a dump waits for a table's lock; 0 means 30 s
}

// Version asks the program for its version.
func (t Tool) Version(ctx context.Context) (floors.Version, error) {
	return floors.Find(ctx, t.Path, t.As)
}

// Dump is the dump of one database, in one snapshot, for an operation.
type Dump struct {
	tool     Tool
	server   *sessions.Server
	database string
	op       id.OperationID
	password string   // of the login
	owners   []string // of large objects that the login may read
}

// New returns a dump that is not begun yet.
func New(t Tool, s *sessions.Server, database string, op id.OperationID) *Dump {
	if t.LockWait == 0 {
		t.LockWait = 30 * time.Second
	}
	return &Dump{tool: t, server: s, database: database, op: op}
}

const options = sessions.Options + " -c default_transaction_read_only=on -c idle_session_timeout=0 -c DateStyle=ISO,MDY"

// begin begins the transaction of a session. It takes no snapshot yet.
var begin = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ` + joblogin.LockWithin(holdPatience)

// Session is a session of the login in a transaction that only reads, and is idle. Closing its connection ends it.
type Session = pgconn.HijackedConn

// Connect opens a session.
func (d *Dump) Connect(ctx context.Context) (*Session, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	return handed(ctx, conn)
}

func (d *Dump) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := d.server.Dial(ctx, LoginOf(d.op), d.password, d.database, map[string]string{
		"application_name": sessions.Name(d.op), "options": options,
	})
	if err != nil {
		return nil, err
	}
	if err := run(ctx, conn, begin); err != nil {
		return nil, errors.Join(fmt.Errorf("begin a dump: %w", err), conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// handed takes a session from pgconn, or ends it.
func handed(ctx context.Context, conn *pgconn.PgConn) (*Session, error) {
	err := conn.SyncConn(ctx)
	if err == nil {
		var s *Session
		if s, err = conn.Hijack(); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("hand on a session: %w", err), conn.Close(context.WithoutCancel(ctx)))
}

// Run has pg_dump dump what a session sees, and has consume read its output. When either fails, both end. It ends the session.
// Neither the process list nor the child's environment shows a secret: the child needs none.
func (d *Dump) Run(ctx context.Context, s *Session, consume func(io.Reader) error, args ...string) error {
	defer s.Conn.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	door, err := openDoor(d.tool.As)
	if err != nil {
		return err
	}
	defer door.Close() //nolint:errcheck // what is left is an empty folder
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe to pg_dump: %w", err)
	}
	var complaint tail
	cmd := exec.CommandContext(ctx, d.tool.Path, append(d.args(), args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = d.env(door.folder), in, &complaint, child.Attributes(d.tool.As)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	ended, served := supervise(cmd, in), make(chan error, 1)
	go func() { served <- door.serve(ctx, s) }()
	consumed := consume(out)
	if consumed != nil {
		stop()
	}
	err = errors.Join(out.Close(), <-ended)
	stop()
	unserved := <-served
	switch {
	case consumed != nil && !complaint.failed(err):
		return consumed
	case err != nil:
		return &failedError{complaint: complaint.text(), err: errors.Join(err, unserved)}
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

func (d *Dump) args() []string {
	return []string{"--format=plain", "--no-password", "--no-subscriptions", "--no-tablespaces", "--encoding=UTF8"}
}

func (d *Dump) env(door string) []string {
	return []string{
		"PGHOST=" + door, "PGPORT=" + strconv.Itoa(doorPort), "PGUSER=" + LoginOf(d.op), "PGDATABASE=" + d.database,
		"PGSSLMODE=disable", "PGCONNECT_TIMEOUT=30", "LC_ALL=C", "PATH=" + os.Getenv("PATH"),
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
