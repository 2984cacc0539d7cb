package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// Config is what an archive is kept with.
type Config struct {
	// Dir is a folder of this agent alone: for its notes, and for the servers beside the live one. They need room there.
	Dir string
	// Socket is where PostgreSQL's archive_command hands segments over.
	Socket string
	// Postgres is the path of the server's program, for the servers beside the live one.
	Postgres string
	// Plan says how often the server is copied, and how far back a moment may be.
	Plan Plan
	// Open makes the engine for a server, once it is known.
	Open func(Place) (Engine, error)
	// Server opens the agent's sessions.
	Server *sessions.Server
	Now    func() time.Time
	Log    *zap.Logger
	// Crash is told of each point where a test kills the agent.
	Crash func(point string)
	// Replaced is called with an ErrReplaced, once: the archive has ended by itself.
	Replaced func(error)
}

// Place is the server that is archived, as it says itself.
type Place struct {
	Installation string // the name of its maintenance database
	DataDir      string
	Passphrase   string
	// As is whom programs run as that are not to be root, for an agent that is: who has the data directory; nil: the agent's user.
	As *syscall.Credential
	// Storage is where the archive of a server that is gone is, as command.Inherit has it; empty: this is the agent's own server.
	Storage     string
	lost        bool
	segmentSize int64
	lockTable   int64 // how many locks it has room for
}

// CrashPoints are the moments at which tests kill an agent, in their order.
var CrashPoints = []string{"archive.pushed", "archive.copied", "archive.fetched", "archive.replayed"}

// Archive is a server's.
type Archive struct {
	Config
	journal *journal
	woken   chan struct{}

	mu      sync.Mutex
	engine  Engine // nil until it is ready
	place   Place
	line    lineage
	backups []Backup      // of the lineage
	changed chan struct{} // closed, and made anew, when a segment is stored
	trouble trouble
	over    error         // the server was replaced
	failed  bool          // the last copy: the next one is full
	wrong   string        // what became of the last round; empty: nothing is wrong
	sides   chan struct{} // has room for as many as run at a time
	using   sync.RWMutex  // is held for reading by who reads copies and segments
	lost    map[Lost]*lostArchive

	// proof is a segment that was ended to see whether PostgreSQL hands over what it writes; proven is that it does.
	proof  Segment
	proven bool

	endings chan struct{} // has room for the one who ends a segment
	ended   ending        // the last; guarded by mu
}

// sidesAtOnce is how many servers run beside the live one.
const sidesAtOnce = 2

const (
	lookAt = time.Minute // the pause between two looks at what is due
	again  = 10 * time.Second
	// copyAgain is the longest pause after a copy that failed, and failedShare how many times as long as that took: one that failed
	// at once has cost nothing, and without a copy no moment can be had back.
	copyAgain   = 5 * time.Minute
	failedShare = 10
)

// New makes an archive. Nothing is done before Run.
func New(c Config) (*Archive, error) {
	c.Plan = c.Plan.complete()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Crash == nil {
		c.Crash = func(string) {}
	}
	if c.Replaced == nil {
		c.Replaced = func(error) {}
	}
	for _, dir := range []string{c.Dir, filepath.Join(c.Dir, sidesFolder)} {
		if err := os.MkdirAll(dir, 0o711); err != nil { // whom the programs run as goes through
			return nil, err
		}
	}
	j, err := openJournal(filepath.Join(c.Dir, "segments"))
	if err != nil {
		return nil, err
	}
	return &Archive{
		Config: c, journal: j, woken: make(chan struct{}, 1), changed: make(chan struct{}), sides: make(chan struct{}, sidesAtOnce),
		endings: make(chan struct{}, 1),
	}, nil
}

// Run keeps the archive until ctx ends: it takes segments, and copies the server when that is due.
func (a *Archive) Run(ctx context.Context) {
	if err := a.sweep(); err != nil {
		a.Log.Warn("what was restored beside the server is not removed", zap.Error(err))
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go a.listen(ctx)
	loop.Run(ctx, a.Log, a.woken, "the archive is not kept", func(ctx context.Context) (time.Duration, error) {
		pause, err := again, a.ready(ctx)
		if errors.Is(err, ErrReplaced) {
			a.replaced(err)
			end()
		}
		if a.found(err); err == nil {
			began := time.Now()
			if pause, err = lookAt, a.copyDue(ctx); err != nil {
				pause = afterFailed(time.Since(began))
			}
			a.found(err)
		}
		return pause, err
	})
}

// afterFailed is the pause after a copy that failed and took so long.
func afterFailed(took time.Duration) time.Duration {
	return min(max(again, failedShare*took), copyAgain)
}

// found keeps what is wrong, for who asks.
func (a *Archive) found(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong = ""; err != nil {
		a.wrong = err.Error()
	}
}

// ready opens the engine, and makes its place, once for this process. Then it sees that PostgreSQL hands over what it writes.
func (a *Archive) ready(ctx context.Context) error {
	if a.ofServer() != nil {
		if err := a.confirmed(ctx); err != nil {
			return err
		}
		return a.prove(ctx)
	}
	place, err := a.look(ctx)
	if err != nil {
		return err
	}
	engine, err := a.Open(place)
	if err != nil {
		return err
	}
	if err := engine.Prepare(ctx); err != nil {
		return err
	}
	line, err := a.follow(ctx, engine, place)
	if err != nil {
		return err
	}
	if err := a.catchUp(ctx, engine); err != nil {
		return err
	}
	backups, err := engine.Backups(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.engine, a.place, a.line, a.wrong = engine, place, line, ""
	a.backups = line.backups(backups, place.segmentSize)
	a.mu.Unlock()
	a.Log.Info("the archive is ready", zap.Int("copies", len(backups)))
	return a.prove(ctx)
}

// prove ends a segment, and waits until it is stored. PostgreSQL, which pauses after what failed, goes on at once.
func (a *Archive) prove(ctx context.Context) (err error) {
	if a.proven {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	if a.proof == "" { // or each try would add one to those that wait
		if a.proof, err = a.switchSegment(ctx); err != nil {
			return err
		}
	}
	err = a.awaitStored(ctx, a.proof)
	a.proven = err == nil
	return err
}

// ofServer is the engine; nil while it is not ready.
func (a *Archive) ofServer() Engine {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engine
}

// catchUp notes what the archive has and the journal does not: an agent that was killed may have noted its last segments nowhere.
func (a *Archive) catchUp(ctx context.Context, e Engine) error {
	has, err := e.Segments(ctx)
	if err != nil {
		return err
	}
	return a.journal.note(has...)
}

// look reads what the server says of itself.
func (a *Archive) look(ctx context.Context) (p Place, err error) {
	key, err := os.ReadFile(a.keyFile())
	if errors.Is(err, os.ErrNotExist) {
		return p, errors.New("the control plane has not sent the key of the archive yet")
	}
	if err != nil {
		return p, err
	}
	p.Passphrase = string(key)
	var whole, mode string
	err = a.Server.Admin("", func(db *sql.DB) error {
		const query = `SELECT current_setting('archive_mode'),
			(SELECT id::text FROM ledger.installation), current_setting('data_directory'),
			(SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'),
			current_setting('max_locks_per_transaction')::bigint * current_setting('max_connections')::bigint,
			current_setting('full_page_writes')`
		return db.QueryRowContext(ctx, query).Scan(
			&mode, &p.Installation, &p.DataDir, &p.segmentSize, &p.lockTable, &whole)
	})
	switch {
	case err != nil:
		return p, err
	case mode == "off":
		return p, errors.New("archive_mode is off: run pgherd agent init with --archive-socket, and restart PostgreSQL")
	case whole == "off":
		return p, errors.New("full_page_writes is off: without it, no single database can be had back")
	}
	var owner unix.Stat_t
	if err := unix.Stat(p.DataDir, &owner); err != nil {
		return p, err
	}
	if os.Geteuid() == 0 {
		p.As = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return p, nil
}

func (a *Archive) keyFile() string { return filepath.Join(a.Dir, "key") }

// SetKey stores the passphrase of the archive, which the control plane keeps. It refuses another one than it has: everything in
// the archive would be lost.
func (a *Archive) SetKey(passphrase string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	has, err := os.ReadFile(a.keyFile())
	switch {
	case err == nil && string(has) == passphrase:
		return nil
	case err == nil:
		return fmt.Errorf("the archive has another key: %w", ErrOther)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := WriteDurably(a.keyFile(), passphrase); err != nil {
		return err
	}
	loop.Wake(a.woken)
	return nil
}

// WriteDurably writes a secret so that a power failure leaves it whole, or none.
func WriteDurably(path, text string) error {
	next := path + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	if err := syncPath(next); err != nil {
		return err
	}
	return errors.Join(os.Rename(next, path), syncPath(filepath.Dir(path)))
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// KeyMark is that of the key that the archive has; empty while it has none.
func (a *Archive) KeyMark() string {
	key, err := os.ReadFile(a.keyFile())
	if err != nil {
		return ""
	}
	return command.ArchiveKeyMark(string(key))
}

// copyDue copies the server if that is due, and forgets the segments that nothing needs any more.
func (a *Archive) copyDue(ctx context.Context) error {
	engine, backups, size := a.kept()
	stored := a.stored()
	due, full := a.Plan.due(backups, unbroken(backups, stored, size), after(backups, stored), a.Now())
	if !due {
		return nil
	}
	began := time.Now()
	full = full || a.failed
	err := engine.Copy(ctx, full)
	a.failed = err != nil
	if err != nil {
		return fmt.Errorf("copying the server: %w", err)
	}
	a.Crash("archive.copied")
	if err := a.expire(ctx, engine); err != nil {
		return fmt.Errorf("removing what is older than the window: %w", err)
	}
	if backups, err = engine.Backups(ctx); err != nil {
		return err
	}
	if err := a.closeCopy(ctx, backups); err != nil {
		return err
	}
	a.mu.Lock()
	a.backups = a.line.backups(backups, size)
	a.mu.Unlock()
	a.Log.Info("the server was copied", zap.Bool("full", full), zap.Duration("took", time.Since(began)))
	if len(backups) == 0 {
		return nil
	}
	stored = a.journal.stored() // those of other lines, too
	for i, s := range stored {
		if s.Segment >= backups[0].First {
			return a.journal.replace(stored[i:])
		}
	}
	return nil
}

// closeCopy has stored what is committed until the newest copy counts as made. The engine's times are whole seconds: without it,
// a window would have the rest of a second of which nothing may be stored.
func (a *Archive) closeCopy(ctx context.Context, backups []Backup) error {
	if err := loop.Wait(ctx, newest(backups).Sub(a.Now())); err != nil {
		return err
	}
	return a.endSegment(ctx)
}

// expire waits for those who use what it might remove. Who comes then waits for it.
func (a *Archive) expire(ctx context.Context, e Engine) error {
	a.using.Lock()
	defer a.using.Unlock()
	return e.Expire(ctx)
}

// kept is the engine with what it has.
func (a *Archive) kept() (e Engine, backups []Backup, segmentSize int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.engine, a.backups, a.place.segmentSize
}

// stored are the segments of the server's lineage that are stored, ascending.
func (a *Archive) stored() []Stored {
	_, _, size := a.kept()
	return a.lineage().stored(a.journal.stored(), size)
}

// unbroken reports whether all segments from the newest copy to the last that was stored are there.
func unbroken(backups []Backup, stored []Stored, size int64) bool {
	if len(backups) == 0 || len(stored) == 0 {
		return true // there will be a copy in any case
	}
	list := spans(backups[len(backups)-1:], stored, size)
	return len(list) == 1 && list[0].Last == stored[len(stored)-1].Segment
}

// incarnation is one of PostgreSQL's databases that a database was.
type incarnation struct {
	oid uint32
	Life
}

// incarnations are those of a database, ascending. DATABASE_NOT_FOUND: there is no such database.
func (a *Archive) incarnations(ctx context.Context, of id.DatabaseID) (list []incarnation, err error) {
	err = a.Server.Admin("", func(db *sql.DB) error {
		const query = `SELECT oid, since, coalesce(until, 'epoch') FROM ledger.incarnation WHERE database_id = $1 ORDER BY since`
		return pg.Each(ctx, db, func(rows *sql.Rows) error {
			var i incarnation
			err := rows.Scan(&i.oid, &i.Since, &i.Until)
			if i.Until.Unix() == 0 {
				i.Until = time.Time{}
			}
			list = append(list, i)
			return err
		}, query, string(of))
	})
	if err == nil && len(list) == 0 {
		err = fault.New(fault.DatabaseNotFound, "there is no such database")
	}
	return list, err
}

const (
	// storingTime bounds how long who asks for a window waits for the storing of what was written last.
	storingTime = 3 * time.Second
	// staleAfter is how long ago a window may end. PostgreSQL ends no segment in which it has only noted that nobody writes.
	staleAfter = time.Minute
)

// Window is from when to when a database can be had back. It reaches as far as what is stored: up to now, where nothing was
// written since. A database of which nothing is stored yet, as it was made a moment ago, has it stored for that; and so has one
// whose window is stale, while nothing else waits to be stored.
func (a *Archive) Window(ctx context.Context, of id.DatabaseID) (w recovery.Window, err error) {
	lives, err := a.incarnations(ctx, of)
	if err != nil {
		return w, err
	}
	now := a.Now()
	written, err := a.writing(ctx)
	if err != nil {
		return w, err
	}
	life := Life{Since: lives[0].Since, Until: lives[len(lives)-1].Until}
	last, some := a.journal.last()
	surely := a.surely(last)
	list := a.spansTo(surely)
	_, backups, size := a.kept()
	reached := later(last.Ended, surely)
	recently := now.Add(-staleAfter)
	young := reached.Before(life.Since)
	stale := life.Until.IsZero() && reached.Before(recently) && !a.waits(last)
	switch {
	case some && last.Segment == written:
		list = a.spansTo(now)
	case some && (young || stale) && len(backups) > 0 && unbroken(backups, a.stored(), size):
		limited, cancel := context.WithTimeout(ctx, storingTime)
		defer cancel()
		if a.storeUntil(limited, later(life.Since, recently)) == nil { // otherwise it ends where it did, or there is none yet
			list = a.spansTo(now)
		}
	}
	return window(list, life), nil
}

// waits reports whether something waits to be stored, or could not be. last is what was stored last.
func (a *Archive) waits(last Stored) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended.segment > last.Segment || !a.trouble.since.IsZero()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
