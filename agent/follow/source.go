package follow

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
)

// Source keeps the changes of databases that move to other servers.
type Source struct {
	ledger *ledger.Ledger
	server *sessions.Server
	db     *sql.DB // maintenance database
	free   func() (bytes int64, err error)
	log    *zap.Logger

	mu        sync.Mutex
	passwords map[id.OperationID]string // of the logins, as this process has set them
}

// NewSource registers what undoes the keeping of changes. What is kept is bounded by what is free on PostgreSQL's disk.
func NewSource(l *ledger.Ledger, s *sessions.Server, free func() (bytes int64, err error), log *zap.Logger) *Source {
	x := &Source{ledger: l, server: s, db: l.DB(), free: free, log: log, passwords: map[id.OperationID]string{}}
	l.AfterJobs(func(ctx context.Context, operation string) error { return x.Drop(ctx, id.OperationID(operation)) })
	return x
}

// Request says of which database the changes are to be kept.
type Request struct {
	OperationID id.OperationID
	DatabaseID  id.DatabaseID
	Database    string // its name in PostgreSQL
}

// Begin keeps the changes of a database from now on, and returns the moment at which it has begun. What an earlier call has begun
// for the operation is dropped before. All transactions of the server that are open are waited for.
func (s *Source) Begin(ctx context.Context, req Request) (*Moment, error) {
	if err := s.Drop(ctx, req.OperationID); err != nil {
		return nil, err
	}
	intent := "INSERT INTO ledger.followed (operation_id, database_id) VALUES (" + pg.Quote(string(req.OperationID)) + ", " +
		pg.Quote(string(req.DatabaseID)) + ")"
	if err := pg.Atomically(ctx, s.db, intent); err != nil {
		return nil, err
	}
	crash.Point(crash.FollowIntended)
	// A change of a table is in the stream only where the publication had the table at that time.
	if err := s.publish(ctx, req); err != nil {
		return nil, err
	}
	crash.Point(crash.FollowPublished)
	m, err := s.slot(ctx, req)
	if err != nil {
		return nil, err
	}
	crash.Point(crash.FollowSlot)
	return m, nil
}

// ready makes the login, once the snapshot is taken: that knows nothing of it.
func (s *Source) ready(ctx context.Context, req Request, schema, objects string) error {
	name := NameOf(req.OperationID)
	password, err := mark.Make(ctx, s.db, name, "ALTER ROLE "+pg.Ident(name)+" REPLICATION",
		"GRANT CONNECT ON DATABASE "+pg.Ident(req.Database)+" TO "+pg.Ident(name),
		"UPDATE ledger.followed SET schema = "+pg.Quote(schema)+", objects = "+pg.Quote(objects)+
			" WHERE operation_id = "+pg.Quote(string(req.OperationID)))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passwords[req.OperationID] = password
	return nil
}

// Followed is how the changes of a database are reached.
type Followed struct{ Database, Login, Password, Slot, Publication string }

// Of is how the changes are reached that are kept for an operation. ReasonNotFound: none are; why says since when, where they
// were. It may give the login another password.
func (s *Source) Of(ctx context.Context, op id.OperationID) (f Followed, err error) {
	const query = `SELECT d.name, f.why FROM ledger.followed f JOIN ledger.database d ON d.id = f.database_id
		WHERE f.operation_id = $1 AND f.schema IS NOT NULL`
	var why string
	err = s.db.QueryRowContext(ctx, query, string(op)).Scan(&f.Database, &why)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return f, command.Refuse(command.ReasonNotFound, "no changes are kept for the operation")
	case err != nil:
		return f, err
	case why != "":
		return f, command.Refuse(command.ReasonNotFound, "%s", why)
	}
	name := NameOf(op)
	f.Login, f.Slot, f.Publication = name, name, name
	f.Password, err = s.password(ctx, op)
	return f, err
}

// password is that of an operation's login. It is kept nowhere: another process sets another one.
func (s *Source) password(ctx context.Context, op id.OperationID) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.passwords[op]; known != "" {
		return known, nil
	}
	var random [32]byte
	var salt [16]byte
	_, _ = rand.Read(random[:]) // never fails
	_, _ = rand.Read(salt[:])
	password := hex.EncodeToString(random[:])
	set := "ALTER ROLE " + pg.Ident(NameOf(op)) + " PASSWORD " +
		pg.Quote(credential.Verifier(password, salt, credential.Iterations))
	if err := pg.Atomically(ctx, s.db, set); err != nil {
		return "", fmt.Errorf("set the password of a move's login: %w", err)
	}
	s.passwords[op] = password
	return password, nil
}

const (
	// dropTime bounds the end of what is kept for an operation.
	dropTime  = time.Minute
	dropPause = 20 * time.Millisecond
)

// Drop ends what is kept for an operation, and forgets it. It is no error where there is nothing.
func (s *Source) Drop(ctx context.Context, op id.OperationID) error {
	known, err := pg.One[bool](ctx, s.db, "SELECT EXISTS (SELECT FROM ledger.followed WHERE operation_id = $1)", string(op))
	if err != nil || !known {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	if err := s.end(ctx, op); err != nil {
		return err
	}
	return pg.Atomically(ctx, s.db, "DELETE FROM ledger.followed WHERE operation_id = "+pg.Quote(string(op)))
}

// end ends slot, login and publication, in the order in which they cost others least.
func (s *Source) end(ctx context.Context, op id.OperationID) error {
	if err := s.dropSlot(ctx, op); err != nil {
		return err
	}
	crash.Point(crash.FollowSlotDropped)
	name := NameOf(op)
	found, err := mark.Exists(ctx, s.db, name)
	if err == nil && found {
		err = joblogin.End(ctx, s.db, name, joblogin.RunPatience)
	}
	s.mu.Lock()
	delete(s.passwords, op)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.unpublish(ctx, op)
}

// dropSlot ends who reads the slot, and drops it. One that is being made goes with the session that makes it.
func (s *Source) dropSlot(ctx context.Context, op id.OperationID) error {
	const end = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE usename = $1 OR application_name = $2 AND backend_type = 'walsender'`
	const drop = `SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots WHERE slot_name = $1`
	for {
		left, err := pg.One[int](ctx, s.db, end, NameOf(op), sessions.Name(op))
		if err == nil && left == 0 {
			_, err = pg.One[int](ctx, s.db, drop, NameOf(op))
			if err == nil {
				return nil
			}
			if pg.State(err) != ledger.ObjectInUse {
				return fmt.Errorf("drop a replication slot: %w", err)
			}
		}
		if err != nil && pg.State(err) != ledger.ObjectInUse {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a replication slot is in use: %w", ctx.Err())
		case <-time.After(dropPause):
		}
	}
}
