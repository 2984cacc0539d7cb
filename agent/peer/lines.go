package peer

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Lines are where PostgreSQL of this machine comes to what it follows: a port of the loopback, which asks each connection for the
// password of its line, and carries it to the peer. They are in the ledger, and stand again after a restart of the agent.
type Lines struct {
	ledger *ledger.Ledger
	log    *zap.Logger
	seldom loop.Seldom

	mu       sync.Mutex
	all      map[id.OperationID]*line
	listener net.Listener
	port     int
	open     int // connections, of all
	closed   bool
}

// line is that of one operation. It is what a Follow was told, and never changes.
type line struct {
	db       string // its name
	password string
	peer     command.Peer

	ended context.Context
	end   context.CancelFunc
	open  int   // connections
	why   error // the last try to reach the peer failed
}

// The most connections at a time: a subscription has one or two, and a look at how far it is another one.
const (
	mostOfLine  = 4
	mostOfLines = 32
)

// NewLines returns the lines, of which Load has those stand again that stood before.
func NewLines(l *ledger.Ledger, log *zap.Logger) *Lines {
	return &Lines{ledger: l, log: log, all: map[id.OperationID]*line{}}
}

// Register has a line end with its operation.
func (l *Lines) Register() {
	l.ledger.BeforeJobs(func(ctx context.Context, operation string) error { return l.Close(ctx, id.OperationID(operation)) })
}

// Load has the lines of the ledger stand, on the port that they had where that is free. Where it is not, their conninfo is
// another one now.
func (l *Lines) Load(ctx context.Context) error {
	const query = "SELECT operation_id, database, password, url, ca, token, port FROM ledger.line ORDER BY operation_id"
	l.mu.Lock()
	defer l.mu.Unlock()
	port := 0
	err := pg.Each(ctx, l.ledger.DB(), func(rows *sql.Rows) error {
		var op id.OperationID
		found := line{}
		err := rows.Scan(&op, &found.db, &found.password, &found.peer.URL, &found.peer.CA, &found.peer.Token, &port)
		if err == nil && l.all[op] == nil {
			l.put(op, found)
		}
		return err
	}, query)
	if err != nil || len(l.all) == 0 {
		return err
	}
	return l.listen(port)
}

func (l *Lines) put(op id.OperationID, made line) *line {
	made.ended, made.end = context.WithCancel(context.Background())
	l.all[op] = &made
	return &made
}

// listen begins to listen, on that port where it is free.
func (l *Lines) listen(port int) (err error) {
	if l.listener != nil || l.closed {
		return nil
	}
	const loopback = "127.0.0.1:"
	if l.listener, err = net.Listen("tcp", loopback+strconv.Itoa(port)); err != nil {
		l.listener, err = net.Listen("tcp", loopback+"0")
	}
	if err != nil {
		l.listener = nil
		return fmt.Errorf("listen for what is followed: %w", err)
	}
	l.port = l.listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is of TCP
	go l.accept(l.listener)
	return nil
}

// Open has a line stand for an operation, or lead to where the peer is now, and returns what PostgreSQL connects with: fit for
// a subscription of who is no superuser. It opens nothing but this line. Nobody is asked yet whether the peer is there: see
// Failure.
func (l *Lines) Open(ctx context.Context, op id.OperationID, d ledger.Database, p command.Peer) (conninfo string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := line{db: d.Name, password: rand.Text() + rand.Text(), peer: p}
	was := l.all[op]
	if was != nil {
		now.password = was.password
	}
	if err := l.listen(0); err != nil {
		return "", err
	}
	if was != nil && was.db == now.db && was.peer == p {
		return l.conninfo(op, was), nil
	}
	const entered = `INSERT INTO ledger.line (operation_id, database, password, url, ca, token, port)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (operation_id) DO UPDATE SET database = excluded.database, url = excluded.url, ca = excluded.ca,
			token = excluded.token, port = excluded.port`
	_, err = l.ledger.DB().ExecContext(ctx, entered, string(op), now.db, now.password, p.URL, p.CA, p.Token, l.port)
	if err != nil {
		return "", err
	}
	if was != nil {
		was.end()
	}
	return l.conninfo(op, l.put(op, now)), nil
}

// conninfo is what leads to a line. Nothing of the peer's is in it.
func (l *Lines) conninfo(op id.OperationID, of *line) string {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(of.db)
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname='%s' password=%s sslmode=disable gssencmode=disable "+
		"connect_timeout=30", l.port, userOf(op), quoted, of.password)
}

// userOf is who comes for an operation.
func userOf(op id.OperationID) string { return "move_" + id.Compact(op) }

// Conninfo is what Open has returned. ReasonNotFound: no line stands for the operation.
func (l *Lines) Conninfo(_ context.Context, op id.OperationID) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.all[op]; of != nil {
		return l.conninfo(op, of), nil
	}
	return "", command.Refuse(command.ReasonNotFound, "nothing is followed for the operation")
}

// Failure is why the last try to reach an operation's peer failed; nil: it did not, or there was none. It is an *AwayError, or an
// *UnlikeError, which is a *command.Refusal, where the peer has decided.
func (l *Lines) Failure(op id.OperationID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.all[op]; of != nil {
		return of.why
	}
	return nil
}

// Close ends a line, with its connections. It is no error if there is none.
func (l *Lines) Close(ctx context.Context, op id.OperationID) error {
	if _, err := l.ledger.DB().ExecContext(ctx, "DELETE FROM ledger.line WHERE operation_id = $1", string(op)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.all[op]; of != nil {
		of.end()
		delete(l.all, op)
	}
	return nil
}

// Stop ends all connections: the agent ends, and its successor has the lines stand again.
func (l *Lines) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.listener != nil {
		_ = l.listener.Close() // nobody comes any more
	}
	for _, of := range l.all {
		of.end()
	}
}

var errCrowded = errors.New("too many connections follow at a time")

// enter counts a connection of a line, until leave is called.
func (l *Lines) enter(of *line) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.open >= mostOfLine || l.open >= mostOfLines {
		return nil, errCrowded
	}
	of.open, l.open = of.open+1, l.open+1
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		of.open, l.open = of.open-1, l.open-1
	}, nil
}

// find is the line that a user comes for; nil where there is none.
func (l *Lines) find(user string) (op id.OperationID, of *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for op, of := range l.all {
		if userOf(op) == user {
			return op, of
		}
	}
	return "", nil
}

func (l *Lines) fails(op id.OperationID, of *line, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.why = why
	if why != nil && l.all[op] == of {
		l.seldom.Warn(l.log, string(op), "the server that is followed was not reached", zap.String("operationId", string(op)),
			zap.Error(why))
	}
}
