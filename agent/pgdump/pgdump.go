// Package pgdump runs pg_dump in an exported snapshot of a database, under a login made for that one dump.
package pgdump

import (
	"context"
	"database/sql"
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
	snapshot string
	password string // of the login
}

// New returns a dump that is not begun yet.
func New(t Tool, s *sessions.Server, database string, op id.OperationID) *Dump {
	if t.LockWait == 0 {
		t.LockWait = 30 * time.Second
	}
	return &Dump{tool: t, server: s, database: database, op: op}
}

// Export takes the snapshot of a transaction, which must stay open until the dump ends.
func (d *Dump) Export(ctx context.Context, tx *sql.Tx) error {
	// A customer who keeps a table locked can delay a backup only as long as pg_dump waits.
	if _, err := tx.ExecContext(ctx, `SELECT set_config('lock_timeout', $1, true)`, d.lockWait()); err != nil {
		return fmt.Errorf("limit the wait for locks: %w", err)
	}
	if err := tx.QueryRowContext(ctx, `SELECT pg_export_snapshot()`).Scan(&d.snapshot); err != nil {
		return fmt.Errorf("export snapshot: %w", err)
	}
	return nil
}

func (d *Dump) lockWait() string { return strconv.FormatInt(d.tool.LockWait.Milliseconds(), 10) }

// options make sessions of the login read-only from their start, and fix how values are written: pg_dump leaves some of
// backup.DigestSettings, and how strings are read, to the defaults of the database.
const options = sessions.Options + " -c default_transaction_read_only=on -c idle_session_timeout=0" +
	" -c DateStyle=ISO,MDY -c IntervalStyle=postgres -c extra_float_digits=3 -c bytea_output=hex -c TimeZone=UTC" +
	" -c lc_monetary=C -c quote_all_identifiers=off -c standard_conforming_strings=on"

// Connect opens a connection of the login in which the snapshot is set.
func (d *Dump) Connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := d.server.Dial(ctx, LoginOf(d.op), d.password, d.database, map[string]string{
		"application_name": sessions.Name(d.op), "options": options,
	})
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '`+d.snapshot+`';
		`+joblogin.LockWithin(d.tool.LockWait)).ReadAll()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("count rows in the snapshot: %w", err), conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// Run starts pg_dump and has consume read its output. When either fails, both end. The process list shows no secret: the
// password is in the child's environment, which only the agent's user can read.
func (d *Dump) Run(ctx context.Context, consume func(io.Reader) error, args ...string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe to pg_dump: %w", err)
	}
	var complaint tail
	cmd := exec.CommandContext(ctx, d.tool.Path, append(d.args(), args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = d.env(), in, &complaint, child.Attributes(d.tool.As)
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
		return &failedError{complaint: complaint.text(), err: err}
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
	return []string{
		"--format=plain", "--no-password", "--no-subscriptions", "--no-tablespaces", "--encoding=UTF8", "--snapshot=" + d.snapshot,
		"--lock-wait-timeout=" + d.lockWait(),
	}
}

func (d *Dump) env() []string {
	return []string{
		"PGHOST=" + d.server.Host, "PGPORT=" + strconv.Itoa(d.server.Port), "PGUSER=" + LoginOf(d.op), "PGPASSWORD=" + d.password,
		"PGDATABASE=" + d.database, "PGSSLMODE=disable", "PGAPPNAME=" + sessions.Name(d.op), "PGOPTIONS=" + options,
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
