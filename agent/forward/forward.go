// Package forward sends on who still comes to this server for a database that another one has.
//
// PgBouncer keeps both entries of such a database. It admits a client by the verifier that the login has at the other server,
// and logs in there with what it has learned from the client, which fits since the verifier is the same. The entries lead to a
// socket of the agent's: the agent carries what comes there, through TLS, to the PgBouncer of the other server. PgBouncer cannot
// do that itself: whether and how it verifies a server is one setting for all its servers, and PostgreSQL, on the same machine,
// has no certificate. With a setting that takes either, somebody in between would be taken for the other server. The price is
// that connections that are sent on end with the agent, which its clients take for a server that restarts.
//
// A forward ends by itself at its time: its verifiers are given to nobody from that moment on. It ends at once where another
// database of its name comes into service here, by a trigger of the ledger. Its own database may be here, closed: this server has
// parted with it and not dropped it yet, or it comes back. The forward stands until customers are let in here.
package forward

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/id"
)

// Pooler is what this package needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	SyncSoon(read pooler.Read)
	Evict(ctx context.Context, who pooler.Who) error
}

// Forwards carries out the commands about forwards, and carries whom they send on.
type Forwards struct {
	ledger   *ledger.Ledger
	db       *sql.DB // maintenance database
	settings pooler.Settings
	owner    *pooler.Owner
	pooler   Pooler
	log      *zap.Logger
	seldom   loop.Seldom
	wake     chan struct{}
	room     room

	// storing is held from when what is stored is read, or changed, until the lines are those of that: one new forward at a time
	// takes the next free socket, and none is taken to be one that has ended.
	storing sync.Mutex

	mu    sync.Mutex
	lines map[string]*line // by the database's name
}

// New registers the commands with the ledger. Load opens what was forwarded before.
func New(l *ledger.Ledger, s pooler.Settings, owner *pooler.Owner, p Pooler, log *zap.Logger) *Forwards {
	go trusted() // reading it takes as long as all else of a forward, for which clients wait
	x := &Forwards{
		ledger: l, db: l.DB(), settings: s, owner: owner, pooler: p, log: log, wake: make(chan struct{}, 1),
		room: make(room, mostCarried), lines: map[string]*line{},
	}
	ledger.On(l, x.set, ledger.OfNoOperation)
	ledger.On(l, x.end, ledger.OfNoOperation)
	return x
}

// stored is a forward as the ledger has it.
type stored struct {
	name string
	db   id.DatabaseID
	line int // the number of its socket
	to   target
	left time.Duration // until its end, by PostgreSQL's clock
}

const storedQuery = `SELECT database, database_id, socket, host, port, ca, extract(epoch FROM until - clock_timestamp())
	FROM pooler.forward`

func (x *Forwards) stored(ctx context.Context) (all []stored, err error) {
	err = pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var s stored
		var left float64
		err := rows.Scan(&s.name, &s.db, &s.line, &s.to.host, &s.to.port, &s.to.ca, &left)
		s.left = time.Duration(left * float64(time.Second))
		all = append(all, s)
		return err
	}, storedQuery)
	return all, err
}

// Load opens the lines of the forwards that the ledger has, before PgBouncer is told of them. One that cannot be opened keeps
// nobody else from being served: that is tried again by Run.
func (x *Forwards) Load(ctx context.Context) error {
	_, _, failed, err := x.openStored(ctx)
	if failed != nil {
		x.log.Warn(notOpened, zap.Error(failed))
	}
	return err
}

const notOpened = "clients of databases that have moved cannot be sent on"

// openStored has a line for each of the forwards that the ledger has and no other one. It reports whether there was another one,
// and why one of them could not be opened.
func (x *Forwards) openStored(ctx context.Context) (all []stored, closed bool, failed, err error) {
	x.storing.Lock()
	defer x.storing.Unlock()
	if all, err = x.stored(ctx); err != nil {
		return nil, false, nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	there := map[string]bool{}
	for _, s := range all {
		there[s.name] = true
	}
	for name, l := range x.lines {
		if !there[name] {
			l.remove()
			delete(x.lines, name)
			closed = true
		}
	}
	for _, s := range all {
		failed = errors.Join(failed, x.openLocked(s))
	}
	return all, closed, failed, nil
}

func (x *Forwards) open(s stored) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.openLocked(s)
}

// openLocked keeps a line that leads to the right place.
func (x *Forwards) openLocked(s stored) error {
	at := x.settings.ForwardSocket(s.line)
	was := x.lines[s.name]
	if was != nil && was.to == s.to && was.socket == at {
		return nil
	}
	if was != nil {
		was.remove()
		delete(x.lines, s.name)
	}
	for name, l := range x.lines {
		if l.socket == at { // its forward has ended by itself: whatever is done about that spares the new socket
			l.close()
			delete(x.lines, name)
		}
	}
	if err := x.owner.SocketFolder(at.Dir); err != nil {
		return err
	}
	l, err := openLine(at, s.to, x.owner, x.room)
	if err != nil {
		return fmt.Errorf("the socket for %s: %w", s.name, err)
	}
	l.failed = func(err error) {
		x.seldom.Warn(x.log, "line"+s.name, notOpened, zap.String("database", s.name), zap.String("host", s.to.host),
			zap.Error(err))
	}
	x.lines[s.name] = l
	go l.serve()
	go l.watch()
	return nil
}

func (x *Forwards) close(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.lines[name]; l != nil {
		l.remove()
		delete(x.lines, name)
	}
}

// Failure says why nobody can be sent on to a database, by the last look or client; empty: as far as is known, they can.
func (x *Forwards) Failure(database string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.lines[database]; l != nil {
		return l.failure()
	}
	return ""
}

// Count says for how many databases the server sends on, and of how many of these it cannot.
func (x *Forwards) Count() (all, failing int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.lines {
		if l.failure() != "" {
			failing++
		}
	}
	return len(x.lines), failing
}

// Close ends all that is carried: the agent ends. The sockets stay for the next one.
func (x *Forwards) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.lines {
		l.close()
	}
	clear(x.lines)
}
