package archive

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/agent/loop"
)

const (
	// pushTime bounds how long the engine may take for a segment. PostgreSQL tries again.
	pushTime = 2 * time.Minute
	// askTime bounds how long who hands a segment over may take to say which.
	askTime = 5 * time.Second
	// mostAsked bounds what it may say.
	mostAsked = 4 << 10
	// notReady is what the agent says while it cannot store anything yet.
	notReady = "the archive is not ready; the agent's log says why"
	// clientsAtOnce bounds how many hand over at a time. PostgreSQL does so one by one.
	clientsAtOnce = 4
)

// listen takes segments by the socket until ctx ends.
func (a *Archive) listen(ctx context.Context) {
	loop.Run(ctx, a.Log, nil, "PostgreSQL cannot hand over what it has written", func(ctx context.Context) (time.Duration, error) {
		return again, a.serve(ctx)
	})
}

func (a *Archive) serve(ctx context.Context) error {
	if err := os.Remove(a.Socket); err != nil && !errors.Is(err, os.ErrNotExist) { // of an agent before
		return err
	}
	l, err := net.Listen("unix", a.Socket)
	if err != nil {
		return err
	}
	if own, ok := l.(*net.UnixListener); ok {
		own.SetUnlinkOnClose(false) // the next agent may have its own there by then
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	if err := os.Chmod(a.Socket, 0o666); err != nil { // who asks is told apart by who it is
		return errors.Join(err, l.Close())
	}
	slots := make(chan struct{}, clientsAtOnce)
	for {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		client, ok := conn.(*net.UnixConn)
		if !ok || a.isPostgres(client) != nil {
			_ = conn.Close() // before it can take anybody's place
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			a.answer(ctx, client)
		}()
	}
}

// answer stores the file that a client names, and says "ok" or what is wrong, in one line.
func (a *Archive) answer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close() //nolint:errcheck // nothing is lost with it: PostgreSQL asks again
	_ = conn.SetReadDeadline(time.Now().Add(askTime))
	path, err := bufio.NewReader(io.LimitReader(conn, mostAsked)).ReadString('\n')
	if err != nil {
		return
	}
	says := "ok"
	if err := a.take(ctx, strings.TrimSuffix(path, "\n")); err != nil {
		says = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	_, _ = io.WriteString(conn, says+"\n")
}

func (a *Archive) take(ctx context.Context, path string) error {
	a.mu.Lock()
	engine, data, over := a.engine, a.place.DataDir, a.over
	a.mu.Unlock()
	if over != nil {
		return over
	}
	if engine == nil {
		return errors.New(notReady)
	}
	name := filepath.Base(path)
	own := filepath.Join(data, "pg_wal", name)
	if !pushable.MatchString(name) {
		return fmt.Errorf("%q is no file of WAL", path)
	}
	info, err := os.Lstat(own)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no file", own)
	}
	// PostgreSQL's paths are without symbolic links, and the data directory may be behind one.
	if named, err := os.Lstat(path); err != nil || !os.SameFile(info, named) {
		return fmt.Errorf("%q is no file of WAL of this server, whose data are in %s", path, data)
	}
	return a.push(ctx, engine, own, info.ModTime())
}

// isPostgres refuses a client that is not of the user whose the data directory is.
func (a *Archive) isPostgres(conn *net.UnixConn) error {
	a.mu.Lock()
	data := a.place.DataDir
	a.mu.Unlock()
	var owner unix.Stat_t
	if err := unix.Stat(data, &owner); err != nil { // it is not known yet
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	ask := func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }
	if err := raw.Control(ask); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if peer.Uid != owner.Uid {
		return errors.New("only PostgreSQL's user hands over WAL")
	}
	return nil
}

// endedBefore is how much earlier than its last write a segment is taken to have ended: a transaction that was committed shortly
// before that may be in the next one.
const endedBefore = time.Second

// push stores a file, unless PostgreSQL cannot keep it any longer: see crowded.
func (a *Archive) push(ctx context.Context, e Engine, path string, written time.Time) error {
	name := filepath.Base(path)
	if p, err := a.crowded(path); err != nil || p != nil {
		return a.letGo(path, p, cmp.Or(err, errTooFast))
	}
	limited, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	go a.hurry(limited, cancel, path)
	if err := e.Push(limited, path); err != nil {
		return a.troubled(path, err)
	}
	a.relieved()
	a.Crash("archive.pushed")
	segment, whole := ParseSegment(name)
	if !whole {
		return nil
	}
	before, some := a.journal.last()
	if err := a.journal.note(Stored{segment, written.Add(-endedBefore).UTC()}); err != nil {
		return err
	}
	if _, _, size := a.kept(); some && segment > before.Segment.next(size) {
		loop.Wake(a.woken) // the server is to be copied again
	}
	a.mu.Lock()
	close(a.changed)
	a.changed = make(chan struct{})
	a.mu.Unlock()
	return nil
}

// trouble is what the archive lacks.
type trouble struct {
	since   time.Time // of what fails now; zero: nothing does
	why     string
	dropped int // segments that were let go of
}

// troubled decides about a file that could not be stored. PostgreSQL keeps it, and tries again, or it is let go of.
func (a *Archive) troubled(path string, err error) error {
	a.mu.Lock()
	if a.trouble.since.IsZero() {
		a.trouble.since = a.Now()
	}
	a.trouble.why = err.Error()
	a.mu.Unlock()
	p, looked := a.crowded(path)
	return a.letGo(path, p, errors.Join(err, looked))
}

var errTooFast = errors.New("more is written than is stored in the same time")

// fewWaiting is how many segments may wait on a disk that is full of something else, while they can be stored.
const fewWaiting = 4

// crowded returns what waits beside a file once that leaves PostgreSQL too little room: it has taken half of what was free on its
// disk. nil: there is room.
func (a *Archive) crowded(path string) (*pile, error) {
	p, err := pileOf(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.bytes <= p.free || a.trouble.since.IsZero() && p.bytes <= fewWaiting*a.place.segmentSize {
		return nil, nil
	}
	return &p, nil
}

// hurryEvery is the pause between two looks at the room that is left while a file is stored: a store may hang.
const hurryEvery = time.Second

// hurry ends the storing of a file when PostgreSQL has too little room for what it writes meanwhile.
func (a *Archive) hurry(ctx context.Context, end context.CancelFunc, path string) {
	for loop.Wait(ctx, hurryEvery) == nil {
		if p, err := a.crowded(path); err == nil && p != nil {
			end()
		}
	}
}

// letGo lets a file go that was not stored, if there is a pile: the server must not stop. What was written since the last segment
// cannot be had back then, until the server is copied again. Without a pile, the error is for PostgreSQL, which keeps the file.
func (a *Archive) letGo(path string, p *pile, err error) error {
	if p == nil {
		return err
	}
	a.mu.Lock()
	a.trouble.dropped++
	a.mu.Unlock()
	a.Log.Error("a segment of WAL was let go of without being stored, as the disk runs full: there is a gap in what can be had back",
		zap.String("segment", filepath.Base(path)), zap.Int64("waiting", p.bytes), zap.Int64("free", p.free), zap.Error(err))
	return nil
}

func (a *Archive) relieved() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trouble.since, a.trouble.why = time.Time{}, ""
}

// pile is the WAL that waits to be handed over.
type pile struct {
	bytes, free int64     // free are on its disk
	since       time.Time // of what waits longest
}

func pileOf(folder string) (p pile, err error) {
	list, err := os.ReadDir(filepath.Join(folder, "archive_status"))
	if err != nil {
		return p, err
	}
	for _, entry := range list {
		name, waits := strings.CutSuffix(entry.Name(), ".ready")
		if !waits {
			continue
		}
		segment, err := os.Lstat(filepath.Join(folder, name))
		if err != nil { // it is handed over by now
			continue
		}
		p.bytes += segment.Size()
		if mark, err := entry.Info(); err == nil && (p.since.IsZero() || mark.ModTime().Before(p.since)) {
			p.since = mark.ModTime()
		}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return p, err
	}
	p.free = int64(disk.Bavail) * disk.Bsize
	return p, nil
}

// Standing is how the archive stands.
type Standing struct {
	Ready bool // it takes segments
	// Wrong is what was wrong when the server was last to be copied or, where the archive is not ready, why; empty: nothing.
	Wrong   string
	Trouble string    // why a segment could not be stored when that was last tried; empty: it could
	Since   time.Time // of the trouble
	Dropped int       // segments that were let go of since the agent started
	Broken  bool      // segments are missing after the newest copy
	// Waiting is how many bytes wait, for as long as Oldest; Free are on their disk. Beyond Free, segments are let go of.
	Waiting, Free int64
	Oldest        time.Time // zero: nothing waits
	Stored        time.Time // when the last segment ended that was stored; zero: none was
	Copied        time.Time // when the newest copy of the server was made; zero: there is none
}

// Standing reads how the archive stands.
func (a *Archive) Standing() Standing {
	a.mu.Lock()
	s := Standing{
		Ready: a.engine != nil, Wrong: a.wrong, Trouble: a.trouble.why, Since: a.trouble.since, Dropped: a.trouble.dropped,
	}
	data, backups, size := a.place.DataDir, a.backups, a.place.segmentSize
	a.mu.Unlock()
	stored := a.stored()
	s.Broken = !unbroken(backups, stored, size)
	if len(stored) > 0 {
		s.Stored = stored[len(stored)-1].Ended
	}
	s.Copied = newest(backups)
	if data != "" {
		p, _ := pileOf(filepath.Join(data, "pg_wal")) // what is not known is not there
		s.Waiting, s.Free, s.Oldest = p.bytes, p.free, p.since
	}
	return s
}
