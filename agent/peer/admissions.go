package peer

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"sync"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Admissions are the peers that this agent admits: those of the ledger, which is read when the agent takes charge. Who shows a
// token makes nobody ask PostgreSQL.
type Admissions struct {
	// Changes are what peers may follow. Set it before the first request.
	Changes Changes

	ledger *ledger.Ledger
	files  *store.Store
	log    *zap.Logger

	mu     sync.Mutex
	loaded bool
	all    map[id.OperationID]*admission
	open   int // requests, of all
}

// admission is one peer's.
type admission struct {
	db    id.DatabaseID
	sum   [sha256.Size]byte // of its token
	ended context.Context   // is over when the peer is admitted no more
	end   context.CancelFunc
	open  int // requests
}

// The most requests at a time. A move needs a file, and two or three connections for changes.
const (
	mostOfPeer = 8
	mostOfAll  = 64
)

// NewAdmissions returns the admissions, of which Load reads those that were made before.
func NewAdmissions(l *ledger.Ledger, files *store.Store, log *zap.Logger) *Admissions {
	return &Admissions{ledger: l, files: files, log: log, all: map[id.OperationID]*admission{}}
}

// Register adds the commands that admit and that leave what was kept for a peer, and what ends an admission.
func (a *Admissions) Register() {
	ledger.On(a.ledger, a.admit)
	ledger.On(a.ledger, a.leave)
	a.ledger.BeforeJobs(func(ctx context.Context, operation string) error { return a.End(ctx, id.OperationID(operation)) })
}

// Load reads the admissions of the ledger, of which there are none before it has succeeded.
func (a *Admissions) Load(ctx context.Context) error {
	const query = "SELECT operation_id, database_id, token_sha256 FROM ledger.peer"
	a.mu.Lock()
	defer a.mu.Unlock()
	err := pg.Each(ctx, a.ledger.DB(), func(rows *sql.Rows) error {
		var op id.OperationID
		var db id.DatabaseID
		var sum string
		if err := rows.Scan(&op, &db, &sum); err != nil {
			return err
		}
		return a.put(op, db, sum)
	}, query)
	a.loaded = a.loaded || err == nil
	return err
}

// put has a token admit from now on, in place of the one before. Requests that go on were made with that.
func (a *Admissions) put(op id.OperationID, db id.DatabaseID, tokenSHA256 string) error {
	was := a.all[op]
	made := &admission{db: db}
	if _, err := hex.Decode(made.sum[:], []byte(tokenSHA256)); err != nil {
		return err
	}
	if was != nil && was.db == made.db && was.sum == made.sum {
		return nil
	}
	if was != nil {
		was.end()
	}
	made.ended, made.end = context.WithCancel(context.Background())
	a.all[op] = made
	return nil
}

// admit implements command.AdmitPeer.
func (a *Admissions) admit(ctx context.Context, e protocol.Command, c command.AdmitPeer) (none command.None, err error) {
	if _, err := a.ledger.Known(ctx, string(c.DatabaseID)); err != nil {
		return none, err
	}
	entered := "INSERT INTO ledger.peer (operation_id, database_id, token_sha256) VALUES (" + pg.Quote(e.OperationID) + ", " +
		pg.Quote(string(c.DatabaseID)) + ", " + pg.Quote(c.TokenSHA256) + ") ON CONFLICT (operation_id) DO UPDATE SET " +
		"database_id = excluded.database_id, token_sha256 = excluded.token_sha256"
	if err := pg.Atomically(ctx, a.ledger.DB(), entered, ledger.Outcome(e, none)); err != nil {
		return none, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return none, a.put(id.OperationID(e.OperationID), c.DatabaseID, c.TokenSHA256)
}

// End ends what an operation's peer is admitted to, with what it has under way. It is no error if there is none.
func (a *Admissions) End(ctx context.Context, op id.OperationID) error {
	if _, err := a.ledger.DB().ExecContext(ctx, "DELETE FROM ledger.peer WHERE operation_id = $1", string(op)); err != nil {
		return err
	}
	a.drop(op)
	return nil
}

func (a *Admissions) drop(op id.OperationID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.all[op]; was != nil {
		was.end()
		delete(a.all, op)
	}
}

// Close ends all requests: the agent ends, and what was admitted is admitted by the next one.
func (a *Admissions) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, was := range a.all {
		was.end()
	}
}

// errNotLoaded is what anybody hears until it is known who is admitted.
var errNotLoaded = command.Refuse(command.ReasonUnavailable, "the agent is not yet in charge")

// admits compares a token with that of an operation in constant time, whether there is such an operation or not.
func (a *Admissions) admits(op id.OperationID, token string) (*admission, error) {
	shown := sha256.Sum256([]byte(token))
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loaded {
		return nil, errNotLoaded
	}
	found, wanted := a.all[op], [sha256.Size]byte{}
	if found != nil {
		wanted = found.sum
	}
	if subtle.ConstantTimeCompare(shown[:], wanted[:]) != 1 {
		found = nil
	}
	return found, nil
}

// enter counts a request of a peer, until leave is called. ReasonCrowded: there are too many.
func (a *Admissions) enter(of *admission) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.open >= mostOfPeer || a.open >= mostOfAll {
		return nil, command.Refuse(command.ReasonCrowded, "too many requests of peers are under way")
	}
	of.open, a.open = of.open+1, a.open+1
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		of.open, a.open = of.open-1, a.open-1
	}, nil
}
