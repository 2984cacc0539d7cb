package archive

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
)

// Rebuild brings a lost server back from its archive, as the very same one: all of it, to the last commit that the archive has.
// Everything happens in a folder beside the one where the server is to be, which takes that one's name at the end. So a server
// that is half there cannot be started; and a rebuild that was killed goes on where it was.
type Rebuild struct {
	// At is the moment as of which the server comes back; zero: the last that the archive has.
	At time.Time
	// Postgres is the path of the server's program.
	Postgres string
	// User is the agent's login, and Maintenance its database.
	User, Maintenance string
	// Tell hears how far it is, a line each.
	Tell func(line string)
	Now  func() time.Time
	// Crash is told of each point where a test kills it.
	Crash func(point string)
	*Site
}

// RebuildPoints are the moments at which tests kill a rebuild, in their order.
var RebuildPoints = []string{"rebuild.fetched", "rebuild.replayed", "rebuild.whole", "rebuild.placed"}

// Rebuilt says what came back.
type Rebuilt struct {
	Installation string   `json:"installation"`
	Databases    int      `json:"databases"`
	Timeline     Timeline `json:"timeline"` // that it goes on with
	// LastCommit is the last that came back, or when the copy was made, where none came after it.
	LastCommit time.Time `json:"lastCommit"`
	// Stored is when the archive took the last segment that was replayed.
	Stored time.Time `json:"stored"`
}

// Run does what is left to do. Errors, of which each leaves the folder of the server as it was: ErrKey, ErrNoRoom, AwayError, and
// others that say what to do.
func (r *Rebuild) Run(ctx context.Context, e Engine) (Rebuilt, error) {
	if r.asked = r.wanted(); r.isMade() {
		return r.place()
	}
	c, err := r.choose(ctx, e)
	if err != nil {
		return Rebuilt{}, asTold(e, err)
	}
	if err := r.room(c.copy.Size); err != nil {
		return Rebuilt{}, err
	}
	if err := r.fetch(ctx, e, c.copy); err != nil {
		return Rebuilt{}, asTold(e, err)
	}
	r.Crash("rebuild.fetched")
	done, err := r.replay(ctx, e, c)
	if err != nil {
		return Rebuilt{}, asTold(e, err)
	}
	if err := r.finish(done); err != nil {
		return Rebuilt{}, err
	}
	r.Crash("rebuild.whole")
	return r.place()
}

// isMade reports whether a run before has made what is asked for.
func (r *Rebuild) isMade() bool {
	return r.state.Stage == siteWhole && (r.state.Asked == r.wanted() || r.isPlaced())
}

// wanted tells what is asked for from everything else.
func (r *Rebuild) wanted() string {
	return command.ArchiveKeyMark(r.passphrase) + " " + r.At.UTC().Format(time.RFC3339Nano)
}

func asTold(e Engine, err error) error {
	if e.IsAway(err) {
		return &AwayError{err}
	}
	return err
}

// choose finds the copy to begin with, and what is replayed after it.
func (r *Rebuild) choose(ctx context.Context, e Engine) (c chosen, err error) {
	has, err := holdingsOf(ctx, e)
	if err != nil {
		return c, err
	}
	c.line, c.size = has.line, has.size
	list := has.spans()
	if len(list) == 0 {
		return c, errors.New("the archive has no copy of the server that is whole: have its databases back from their backups")
	}
	if c.from = list[len(list)-1]; !r.At.IsZero() {
		var ok bool
		if c.from, ok = spanFor(list, r.At); !ok || window(list, Life{}).Check(r.At, r.Now()) != nil {
			return c, fmt.Errorf("the archive does not have that moment: it has %s", told(list))
		}
	}
	c.copy = has.backups[slices.IndexFunc(has.backups, func(b Backup) bool { return b.Label == c.from.Backup })]
	if last := has.stored[len(has.stored)-1]; r.At.IsZero() && last.Segment != c.from.Last {
		r.Tell(fmt.Sprintf("segments are missing after %s: what is later, up to %s, cannot be had back",
			c.from.Last, last.Ended.Format(time.RFC3339)))
	}
	return c, nil
}

// chosen is what a server comes back from.
type chosen struct {
	copy Backup
	from Span // from the copy on
	line lineage
	size int64 // of a segment
}

// told names spans, as in "from A to B, from C to D".
func told(list []Span) (text string) {
	w := window(list, Life{})
	begin := w.From
	for _, g := range w.Gaps {
		text += fmt.Sprintf("from %s to %s, ", begin.UTC().Format(time.RFC3339), g.From.UTC().Format(time.RFC3339))
		begin = g.To
	}
	return text + fmt.Sprintf("from %s to %s", begin.UTC().Format(time.RFC3339), w.To.UTC().Format(time.RFC3339))
}

// holdings are what an archive has of the server that has claimed it last.
type holdings struct {
	line    lineage
	size    int64 // of a segment
	backups []Backup
	stored  []Stored
}

func (h holdings) spans() []Span { return h.line.cut(spans(h.backups, h.stored, h.size), h.size) }

// holdingsOf reads them, where there is no server to ask.
func holdingsOf(ctx context.Context, e Engine) (h holdings, err error) {
	if h.line, err = lineageOf(ctx, e); err != nil {
		return h, err
	}
	backups, err := e.Backups(ctx)
	if err != nil {
		return h, err
	}
	stored, err := e.Segments(ctx)
	if err != nil {
		return h, err
	}
	h.size = sizeOf(stored)
	h.backups, h.stored = h.line.backups(backups, h.size), h.line.stored(stored, h.size)
	return h, nil
}

// lineageOf is that of the server which has claimed the archive last.
func lineageOf(ctx context.Context, e Engine) (l lineage, err error) {
	claimed, err := e.Timelines(ctx)
	if err != nil {
		return l, err
	}
	if l.timeline = 1; len(claimed) > 0 {
		l.timeline = slices.Max(claimed)
		text, err := e.History(ctx, l.timeline)
		if err != nil {
			return l, err
		}
		if l.forks, err = ParseHistory(text); err != nil {
			return l, fmt.Errorf("%s: %w", l.timeline.History(), err)
		}
	}
	return l, nil
}

// ErrNoRoom says that the server does not fit.
var ErrNoRoom = errors.New("there is no room for the server")

// besideCopy is what replaying needs besides the copy.
const besideCopy = 2 << 30

func (r *Rebuild) room(size int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(r.work, &disk); err != nil {
		return err
	}
	has := int64(disk.Bavail) * disk.Bsize
	err := filepath.WalkDir(r.data(), func(_ string, d fs.DirEntry, err error) error { // what is there is written over
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				has += info.Size()
			}
		}
		return nil
	})
	if needs := size + min(besideCopy, size/4+besides); err == nil && has < needs {
		err = fmt.Errorf("%w: %s has %d MiB free and %d MiB are needed", ErrNoRoom, filepath.Dir(r.work), has>>20, needs>>20)
	}
	return err
}

// fetch restores a copy, or goes on with it.
func (r *Rebuild) fetch(ctx context.Context, e Engine, copied Backup) error {
	if err := r.ready(ctx); err != nil {
		return err
	}
	if err := r.note(siteFetching, nil); err != nil {
		return err
	}
	r.Tell(fmt.Sprintf("fetching the copy of %s, %d MiB", copied.Stopped.Format(time.RFC3339), copied.Size>>20))
	return e.RestoreWhole(ctx, copied.Label, r.data(), r.steps("fetched"))
}

// steps tells of each tenth.
func (r *Rebuild) steps(what string) func(percent int) {
	next := 10
	return func(percent int) {
		if percent >= next {
			r.Tell(fmt.Sprintf("%s %d %%", what, percent))
			next = percent - percent%10 + 10
		}
	}
}

// replay has a server replay what the archive has, without a network, and ends it. Afterwards the folder is that of a server that
// was shut down.
func (r *Rebuild) replay(ctx context.Context, e Engine, c chosen) (done Rebuilt, err error) {
	if err := r.note(siteReplaying, nil); err != nil {
		return done, err
	}
	s := &replayer{Rebuild: r, engine: e, chosen: c}
	if err := s.run(ctx); err != nil {
		return done, errors.Join(err, s.stop(ctx))
	}
	back := r.Now().UTC()
	done, err = r.ask(ctx, s.sockets)
	r.Crash("rebuild.replayed")
	if err := errors.Join(err, s.stop(ctx)); err != nil {
		return done, err
	}
	var forks []Fork
	if done.Timeline, forks, err = r.newest(); err != nil {
		return done, err
	}
	at := forks[len(forks)-1].At
	if r.At.IsZero() && at/uint64(c.size) < c.from.Last.number(c.size) {
		return done, fmt.Errorf("the replay ended at %X/%X, before the last segment %s", at>>32, uint32(at), c.from.Last)
	}
	done.LastCommit, done.Stored = c.from.From, c.from.To
	if s.last.After(done.LastCommit) {
		done.LastCommit = s.last
	}
	return done, r.writeLoss(done.Timeline, Loss{From: done.LastCommit, To: back})
}

// ask asks the server what it has.
func (r *Rebuild) ask(ctx context.Context, sockets string) (done Rebuilt, err error) {
	server := sessions.Server{Host: sockets, Port: sidePort, User: r.User, Maintenance: r.Maintenance}
	err = server.Admin("", func(db *sql.DB) error {
		const query = `SELECT (SELECT id::text FROM ledger.installation), (SELECT count(*) FROM ledger.database)`
		return db.QueryRowContext(ctx, query).Scan(&done.Installation, &done.Databases)
	})
	if err != nil {
		err = fmt.Errorf("the server came back, but has no ledger: %w", err)
	}
	return done, err
}

// newest is the timeline that the server goes on with.
func (r *Rebuild) newest() (t Timeline, forks []Fork, err error) {
	list, err := os.ReadDir(r.wal())
	for _, f := range list {
		if one, ok := ParseHistoryName(f.Name()); ok {
			t = max(t, one)
		}
	}
	if err == nil && t == 0 {
		err = errors.New("the server has begun no timeline")
	}
	if err != nil {
		return t, nil, err
	}
	text, err := os.ReadFile(filepath.Join(r.wal(), t.History()))
	if err != nil {
		return t, nil, err
	}
	if forks, err = ParseHistory(text); err == nil && len(forks) == 0 {
		err = errHistory
	}
	return t, forks, err
}

// writeLoss writes what was lost into the history, with a word of this rebuild's own: see follow.
func (r *Rebuild) writeLoss(t Timeline, l Loss) error {
	file, err := os.OpenFile(filepath.Join(r.wal(), t.History()), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + lostLine(l, rand.Text()))
	return errors.Join(err, file.Sync(), file.Close())
}

// replayer is the server that replays.
type replayer struct {
	*Rebuild
	chosen
	engine  Engine
	sockets string
	last    time.Time // the last commit that was replayed; zero: none was
	running *running
}

// run returns once everything is replayed.
func (s *replayer) run(ctx context.Context) (err error) {
	if s.sockets, err = os.MkdirTemp("", "pgherd-recover-"); err != nil { // the path of a socket must be short
		return err
	}
	if err := s.Give(s.sockets); err != nil {
		return err
	}
	targeted := !s.At.IsZero()
	for {
		if err := s.configure(); err != nil {
			return err
		}
		err := s.start(ctx, targeted)
		if !targeted || !errors.Is(err, errEndedEarly) {
			return err
		}
		targeted = false // nobody has committed anything later: everything is of before
	}
}

// configure writes files for this one server. It leaves the configuration that the copy has as it was.
func (s *replayer) configure() error {
	for name, text := range map[string]string{
		filepath.Join(s.work, "postgresql.conf"): "", filepath.Join(s.work, "pg_hba.conf"): "local all all trust\n",
		filepath.Join(s.data(), "recovery.signal"): "",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
		if err := s.Give(name); err != nil {
			return err
		}
	}
	return nil
}

// arguments are those of the server. Unlike those of one beside, it waits for the disk, and notes what is to be archived.
func (s *replayer) arguments(targeted bool) []string {
	args := []string{"-D", s.data()}
	settings := [][2]string{
		{"config_file", filepath.Join(s.work, "postgresql.conf")}, {"hba_file", filepath.Join(s.work, "pg_hba.conf")},
		{"ident_file", filepath.Join(s.work, "postgresql.conf")}, // that is empty, too
		{"listen_addresses", ""}, {"unix_socket_directories", s.sockets}, {"unix_socket_permissions", "0700"},
		{"port", fmt.Sprint(sidePort)}, {"ssl", "off"}, {"max_connections", fmt.Sprint(sideConnections)},
		{"superuser_reserved_connections", "0"}, {"reserved_connections", "0"}, {"shared_buffers", "128MB"}, {"huge_pages", "off"},
		{"archive_mode", "on"}, {"archive_command", ""}, {"archive_library", ""}, {"archive_timeout", "0"}, {"hot_standby", "off"},
		{"max_wal_senders", "0"}, {"max_logical_replication_workers", "0"}, {"autovacuum", "off"},
		{"shared_preload_libraries", ""}, {"session_preload_libraries", ""}, {"local_preload_libraries", ""},
		{"fsync", "on"}, {"full_page_writes", "on"}, {"max_wal_size", "2GB"}, {"checkpoint_timeout", "1h"},
		{"restart_after_crash", "off"}, {"jit", "off"}, {"logging_collector", "off"}, {"log_destination", "stderr"},
		{"log_min_messages", "log"}, {"log_line_prefix", ""}, {"log_statement", "none"}, {"log_min_error_statement", "panic"},
		{"lc_messages", "C"}, {"timezone", "UTC"}, {"log_timezone", "UTC"},
		{"restore_command", wary(s.engine.RestoreCommand(s.data()))}, {"recovery_target_timeline", fmt.Sprint(s.line.timeline)},
		{"recovery_target", ""}, {"recovery_target_lsn", ""}, {"recovery_target_name", ""}, {"recovery_target_xid", ""},
		{"recovery_target_time", ""}, {"recovery_target_action", "promote"}, {"recovery_end_command", ""},
		{"archive_cleanup_command", ""}, {"primary_conninfo", ""},
	}
	for _, set := range append(settings, roomForOrigins(s.data())...) {
		if targeted && set[0] == "recovery_target_time" {
			set[1] = s.At.UTC().Format("2006-01-02 15:04:05.999999+00")
		}
		args = append(args, "-c", set[0]+"="+set[1])
	}
	return args
}

// wary is a restore_command that ends the server where the archive does not answer, instead of having it take that for the end of
// what there is: the program ends with 1 for a file that is not there.
func wary(command string) string { return command + " || { [ $? -eq 1 ] && exit 1 || exit 255; }" }

func (s *replayer) start(ctx context.Context, targeted bool) (err error) {
	expected := int64(s.from.Last.number(s.size)-s.from.First.number(s.size)) + 1
	s.Tell(fmt.Sprintf("replaying %d segments", expected))
	s.running, err = runReplay(replayOf{
		program: s.Postgres, args: s.arguments(targeted), dir: s.data(), as: s.as, expected: expected, tell: s.steps("replayed"),
	})
	if err != nil {
		return err
	}
	err = s.running.await(ctx)
	s.last = s.running.lastCommit()
	return err
}

// stop ends the server, and waits until everything is on its disk.
func (s *replayer) stop(ctx context.Context) error {
	err := s.running.stop(ctx)
	return errors.Join(err, os.RemoveAll(s.sockets))
}
