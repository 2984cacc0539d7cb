package archive

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/child"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/recovery"
)

// Side is a server beside the live one, as that was at a moment. Only one database of it is whole. Nobody reaches it but the
// agent: it has no network, and its socket is in a folder that nobody else may enter.
type Side struct {
	// Server opens sessions in it, and Database is the name that the database had.
	Server   *sessions.Server
	Database string
	// Logins are those that the platform had made for it.
	Logins []string

	archive *Archive
	dir     string // the data directory
	sockets string
	moment  Moment
	oids    []uint32
	whole   []string // the folders of the databases that were fetched, and of what all share
	span    Span
	// maintenance is the OID of the maintenance database; 0: it is that of the live server.
	maintenance uint32
	replayed    Segment // the last one
	running     *exec.Cmd
	feed        *feed // gives it what it replays
	ended       chan struct{}
	release     func()

	// hot are the settings of a server that is looked at while it stands still at its moment, and goes on to a later one; nil: it
	// becomes one of its own.
	hot map[string]int64
	// still is whether it stands still.
	still bool
	open  chan struct{} // closed when it does so no more
}

// fetch restores a copy of the server into the folder.
func (s *Side) fetch(ctx context.Context, e Engine) error {
	a := s.archive
	if err := s.remove(); err != nil { // of an attempt before
		return err
	}
	for _, dir := range []string{s.dir, s.dir + ".tablespaces"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := s.give(dir); err != nil {
			return err
		}
	}
	maintenance, err := s.maintenance, error(nil)
	if maintenance == 0 {
		maintenance, err = a.maintenance(ctx)
	}
	if err != nil {
		return err
	}
	began := time.Now()
	fetched := append([]uint32{maintenance}, s.oids...)
	s.whole = []string{"global"}
	for _, oid := range fetched {
		s.whole = append(s.whole, strconv.FormatUint(uint64(oid), 10))
	}
	err = e.Restore(ctx, Restore{Backup: s.span.Backup, Dir: s.dir, Databases: fetched})
	if err != nil {
		return err
	}
	a.log(s.moment).Info("a copy of the server was fetched", zap.String("copy", s.span.Backup),
		zap.Duration("took", time.Since(began)))
	return s.configure(true)
}

func (a *Archive) maintenance(ctx context.Context) (oid uint32, err error) {
	err = a.Server.Admin("", func(db *sql.DB) error {
		oid, err = pg.One[uint32](ctx, db, "SELECT oid FROM pg_database WHERE datname = current_database()")
		return err
	})
	return oid, err
}

func (s *Side) give(path string) error {
	as := s.archive.place.As
	if as == nil {
		return nil
	}
	return os.Chown(path, int(as.Uid), int(as.Gid))
}

func (s *Side) write(name, text string) error {
	path := filepath.Join(s.dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return s.give(path)
}

// configure takes the place of the live server's configuration, all of it: what an administrator has set there is for that
// server. The replay ends with the moment or, where no segment is left after it, with the last one.
func (s *Side) configure(targeted bool) error {
	target, end, hba := "", "promote", "local all all trust\n"
	if s.hot != nil {
		end, hba = "pause", s.onlyOwners()
	}
	if targeted && !s.moment.At.IsZero() {
		target = "recovery_target_time = " + pg.Quote(s.moment.At.UTC().Format("2006-01-02 15:04:05.999999+00")) + "\n" +
			"recovery_target_action = " + end + "\n"
	}
	if line := s.archive.lineage(); line.timeline > 0 { // what a server has written that was replaced is none of this one's
		target += fmt.Sprintf("recovery_target_timeline = '%d'\n", line.timeline)
	}
	return errors.Join(
		s.write("postgresql.auto.conf", "restore_command = "+pg.Quote(feedCommand)+"\n"+target),
		s.write("pgherd_side.conf", ""), s.write("pgherd_side_hba.conf", hba), s.write("recovery.signal", ""),
	)
}

// arguments are those of the server. They override what is in its files.
func (s *Side) arguments() []string {
	args := []string{"-D", s.dir}
	for _, set := range append(roomForOrigins(s.dir), [][2]string{
		{"config_file", filepath.Join(s.dir, "pgherd_side.conf")}, {"hba_file", filepath.Join(s.dir, "pgherd_side_hba.conf")},
		{"listen_addresses", ""}, {"unix_socket_directories", s.sockets}, {"unix_socket_permissions", "0700"},
		{"port", strconv.Itoa(sidePort)},
		{"max_connections", strconv.Itoa(sideConnections)}, {"superuser_reserved_connections", "0"},
		{"max_locks_per_transaction", strconv.FormatInt(max(64, s.archive.place.lockTable/sideConnections), 10)},
		{"shared_buffers", "64MB"}, {"shared_memory_type", "mmap"}, {"dynamic_shared_memory_type", "mmap"}, {"huge_pages", "off"},
		{"archive_mode", "off"}, {"hot_standby", "off"}, {"max_wal_senders", "0"}, {"max_logical_replication_workers", "0"},
		{"autovacuum", "off"}, {"fsync", "off"}, {"full_page_writes", "off"},
		{"max_wal_size", "1GB"}, {"restart_after_crash", "off"}, {"jit", "off"},
		{"logging_collector", "off"}, {"log_destination", "stderr"}, {"log_min_messages", "warning"},
		{"log_line_prefix", "%q" + ofSession},
		{"ignore_invalid_pages", "on"}, // of databases that were left out: see missingPage
		{"log_statement", "none"}, {"log_min_error_statement", "panic"}, {"lc_messages", "C"},
	}...) {
		args = append(args, "-c", set[0]+"="+set[1])
	}
	return append(args, s.whileLookedAt()...)
}

const (
	sidePort        = 5432 // the name of its socket
	sideConnections = 20
	// sideStarts is how often the replay begins, if what it needs is not there at first.
	sideStarts = 3
	// sideEnd bounds how long it may take to end.
	sideEnd = 10 * time.Second
)

// errEndedEarly says that the replay has found no commit after the moment.
var errEndedEarly = errors.New("there is no commit after the moment")

// replay starts the server, and waits until it has replayed up to the moment.
func (s *Side) replay(ctx context.Context, tell jobs.Tell) error {
	var err error
	if s.sockets, err = os.MkdirTemp("", "pgherd-beside-"); err != nil { // the path of a socket must be short
		return err
	}
	if err := s.give(s.sockets); err != nil {
		return err
	}
	return s.reach(ctx, tell)
}

// reach starts the server until it has come to the moment.
func (s *Side) reach(ctx context.Context, tell jobs.Tell) (err error) {
	began := time.Now()
	for start := 1; ; start++ {
		err = s.start(ctx, tell)
		if s.raised(err) {
			start--
			continue
		}
		if !errors.Is(err, errEndedEarly) || start == sideStarts {
			break
		}
		// Nobody has committed anything since the moment that was stored: now somebody does. Where a gap follows, there can be nothing,
		// and all that there is was committed before.
		if found, ok := spanFor(s.archive.spansTo(time.Time{}), s.moment.At); ok && unbrokenTo(found, s.archive) {
			if err := s.archive.endSegment(ctx); err != nil {
				return err
			}
			err = s.configure(true)
		} else {
			err = s.configure(false)
		}
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	s.archive.log(s.moment).Info("the moment was replayed", zap.Duration("took", time.Since(began)))
	if err := s.unlocked(ctx); err != nil {
		return err
	}
	if s.Server = s.connect(); s.moment.DatabaseID == "" {
		return nil
	}
	return s.find(ctx)
}

// unbrokenTo reports whether a span reaches as far as the archive does.
func unbrokenTo(s Span, a *Archive) bool {
	last, ok := a.journal.last()
	return ok && s.Last == last.Segment
}

// start starts the server, and returns once it takes connections, or nil where it has not.
func (s *Side) start(ctx context.Context, tell jobs.Tell) error {
	cmd := exec.Command(s.archive.Postgres, s.arguments()...)
	if s.hot != nil {
		cmd = child.Bounded(lookMemory, s.archive.Postgres, s.arguments()...)
	}
	feed, theirs, err := s.startFeed()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = theirs
	found := newHeard(s.expected(), s.whole, tell)
	ready, ended, err := found.follow(cmd, s.dir, s.archive.place.As, io.Discard)
	for _, f := range theirs {
		_ = f.Close() // the server has its own
	}
	if err != nil {
		return errors.Join(err, feed.stop())
	}
	s.feed = feed
	s.running, s.ended = cmd, ended
	select {
	case <-ready:
		s.replayed, s.still, s.open = found.segment, found.paused.Load(), found.open
		if found.missing != "" {
			return errors.Join(found.why(), s.stop())
		}
		return nil
	case <-found.stuck:
		return errors.Join(found.lower, s.stop())
	case <-s.ended:
		s.running = nil
		if err := s.feed.stop(); err != nil {
			return s.archive.asFound(s.feed.engine, err)
		}
		return found.why()
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.stop())
	}
}

// expected is how many segments there are to replay.
func (s *Side) expected() int64 {
	_, _, size := s.archive.kept()
	return int64(s.span.Last.number(size)-s.span.First.number(size)) + 1
}

// heard is what the server says while it replays.
type heard struct {
	expected, restored int64
	whole              []string
	tell               jobs.Tell
	early              bool
	missing            string // the first page that should be there
	last               string
	segment            Segment // the last that was restored

	paused atomic.Bool // it stands still at the moment
	hot    bool        // and lets anybody in meanwhile
	lower  *lowerError // a setting
	stuck  chan struct{}
	open   chan struct{} // it has become a server of its own
}

func newHeard(expected int64, whole []string, tell jobs.Tell) *heard {
	return &heard{expected: expected, whole: whole, tell: tell, stuck: make(chan struct{}), open: make(chan struct{})}
}

// follow starts a server in its data directory, as a system user, and hears what it says, as does also. ready is closed once it
// takes connections, and ended once it has ended.
func (h *heard) follow(
	cmd *exec.Cmd, dir string, as *syscall.Credential, also io.Writer,
) (ready, ended chan struct{}, err error) {
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.Dir = dir
	cmd.SysProcAttr = child.Attributes(as)
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ready, ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		h.read(io.TeeReader(out, also), ready)
		_ = cmd.Wait() // it is told by what it said
	}()
	return ready, ended, nil
}

// restoredPattern is how it names a segment that it has restored.
var restoredPattern = regexp.MustCompile(`restored log file "([0-9A-F]{24})"`)

// missingPage is what the server says of a page that it is to change and that is not there, with the folder of the database. Some
// changes are written without the page that they are of, such as that all see its rows, where there are no checksums. Of
// databases that were left out there are no files, or such as have holes only, and nothing is read from them.
var missingPage = regexp.MustCompile(`^WARNING:  page \d+ of relation (?:\S+/)?(\w+)/\w+ (?:is uninitialized|does not exist)`)

// ofSession begins what the log of a side has of a session, in which code of the customer's may say whatever it likes. Further
// lines of one message begin with a tab.
const ofSession = "session: "

// read reads until the server ends, and closes ready when it takes connections.
func (h *heard) read(out io.Reader, ready chan<- struct{}) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		said := !strings.HasPrefix(line, ofSession) && !strings.HasPrefix(line, "\t")
		switch {
		case !said:
		case restoredPattern.MatchString(line):
			h.restored++
			h.segment = Segment(restoredPattern.FindStringSubmatch(line)[1])
			h.tell(recovery.Replaying, int(min(99, 100*h.restored/max(1, h.expected))), command.Bytes{})
		case strings.Contains(line, "recovery ended before configured recovery target was reached"):
			h.early = true
		case ready != nil && missingPage.MatchString(line):
			if h.missing == "" && slices.Contains(h.whole, missingPage.FindStringSubmatch(line)[1]) {
				h.missing = strings.TrimSpace(line)
			}
		case strings.Contains(line, "FATAL:"), strings.Contains(line, "PANIC:"):
			h.last = strings.TrimSpace(line)
		case strings.Contains(line, "pausing at the end of recovery"):
			h.paused.Store(true)
		case strings.Contains(line, "database system is ready to accept read-only connections"):
			h.hot = true
		case strings.HasPrefix(line, "DETAIL:"):
			h.hearLower(line)
		}
		open := said && strings.Contains(line, "database system is ready to accept connections")
		if open {
			close(h.open)
		}
		if ready != nil && (open || h.hot && h.paused.Load()) {
			close(ready)
			ready = nil
		}
		if err != nil {
			return
		}
	}
}

// why is why the server has ended. It is called after read.
func (h *heard) why() error {
	if h.early {
		return errEndedEarly
	}
	if h.lower != nil {
		return h.lower
	}
	return fmt.Errorf("the server beside did not replay what the archive has: %s", cmp.Or(h.missing, h.last))
}

// connect is how the agent connects to the server.
func (s *Side) connect() *sessions.Server {
	live := s.archive.Server
	return &sessions.Server{Host: s.sockets, Port: sidePort, User: live.User, Maintenance: live.Maintenance}
}

// find finds out which database it was then, by what the server says of itself.
func (s *Side) find(ctx context.Context) error {
	return s.Server.Admin(s.moment.OperationID, func(db *sql.DB) error {
		const query = `SELECT p.datname, p.oid::bigint, p.datallowconn
			FROM ledger.database l JOIN pg_database p ON p.oid = l.oid WHERE l.id = $1`
		var oid int64
		var open bool
		err := db.QueryRowContext(ctx, query, string(s.moment.DatabaseID)).Scan(&s.Database, &oid, &open)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fault.New(fault.PointNotRecoverable, "the database was not there then")
		case err == nil && !open:
			err = s.admit(ctx, db)
		}
		if err != nil {
			return err
		}
		for _, has := range s.oids {
			if int64(has) == oid {
				const roles = "SELECT name FROM ledger.role WHERE database_id = $1 ORDER BY name"
				s.Logins, err = pg.Column(ctx, db, roles, string(s.moment.DatabaseID))
				return err
			}
		}
		return fmt.Errorf("the database had the OID %d then, which was not fetched (%s)", oid, pq.QuoteIdentifier(s.Database))
	})
}

// admit lets into a database that was out of service then: it was deleted, and recovered since. A server that is only looked at
// cannot be changed.
func (s *Side) admit(ctx context.Context, db *sql.DB) error {
	if s.hot != nil {
		return fault.New(fault.PointNotRecoverable, "the database was deleted then; a clone of that moment shows what it held")
	}
	_, err := db.ExecContext(ctx, "ALTER DATABASE "+pg.Ident(s.Database)+" ALLOW_CONNECTIONS true")
	return err
}

// stop ends the server at once: nothing of it is needed any more.
func (s *Side) stop() error { return s.end(syscall.SIGQUIT, sideEnd) }

// end has the server end by a signal, upon which it removes its shared memory, within a time.
func (s *Side) end(by syscall.Signal, within time.Duration) error {
	if s.running == nil {
		return nil
	}
	_ = s.running.Process.Signal(by) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(within):
		_ = syscall.Kill(-s.running.Process.Pid, syscall.SIGKILL)
		<-s.ended
	}
	s.running = nil
	_ = s.feed.stop() // what it lacks is of no interest any more
	return nil
}

// Close ends the server and removes it.
func (s *Side) Close() error {
	err := errors.Join(s.stop(), s.remove())
	if s.release != nil {
		s.release()
		s.release = nil
	}
	return err
}

func (s *Side) remove() error {
	err := errors.Join(os.RemoveAll(s.dir), os.RemoveAll(s.dir+".tablespaces"))
	if s.sockets != "" {
		err = errors.Join(err, os.RemoveAll(s.sockets))
	}
	return err
}
