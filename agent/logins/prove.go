package logins

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

// proofTime bounds the proof of one password with all its attempts. In a full pool a log-in waits like any client.
const proofTime = 10 * time.Second

// proofPause is between two attempts where one failed for another reason than the log-in itself.
const proofPause = 100 * time.Millisecond

// proveAccepted logs in at both entries of the pooler, and directly where one of them does not show that the password is right.
// Nobody's session is left from before, so whom PostgreSQL answers through the pooler it has let in with this password. Where the
// password is right, but the owner has withdrawn CONNECT, connect is false. An error that nobody knows the reason of is
// "unavailable".
func (x *Logins) proveAccepted(ctx context.Context, l loginRow, password string) (connect bool, err error) {
	limited, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	entries := pooler.EntryNames(l.db.Name)
	may, err := x.mayConnect(limited, l)
	if err != nil {
		return false, err
	}
	if !may {
		entries = entries[:1] // PgBouncer would remember at the other one too that it did not get in
	}
	pooled := make([]error, len(entries))
	each := func(try func(i int, entry string)) {
		var all sync.WaitGroup
		for i, entry := range entries {
			all.Go(func() { try(i, entry) })
		}
		all.Wait()
	}
	each(func(i int, entry string) { pooled[i] = x.pooler.Prove(limited, entry, l.name, password) })
	if errors.Join(pooled...) == nil {
		return true, nil
	}
	direct := x.patiently(ctx, func(ctx context.Context) error { return x.proveDirectly(ctx, l, password) })
	each(func(i int, entry string) {
		if direct == nil && pooled[i] != nil && !isAnswered(pooled[i]) {
			pooled[i] = moreTelling(pooled[i], x.patiently(limited, func(ctx context.Context) error {
				return x.pooler.Prove(ctx, entry, l.name, password)
			}))
		}
	})
	for i, entry := range entries {
		if connect, err = judge(direct, x.orFull(ctx, entry, pooled[i])); err != nil {
			return connect, err
		}
	}
	return connect, nil
}

// orFull looks why PgBouncer does not get into PostgreSQL: where others hold all connections of the entry, it does not even try.
func (x *Logins) orFull(ctx context.Context, entry string, pooled error) error {
	if !errors.Is(pooled, pooler.ErrFailing) || errors.Is(pooled, pooler.ErrNoSession) {
		return pooled
	}
	full, err := x.pooler.Full(ctx, entry)
	if err == nil && full {
		return fmt.Errorf("%w: %w", pooler.ErrNoServer, pooled)
	}
	return errors.Join(pooled, err)
}

// judge says what the direct log-in and one through the pooler show together. One that PgBouncer has accepted and found no server
// connection for shows enough: PostgreSQL was asked directly. Others' clients could otherwise fill the pool, and keep a change
// from ending, for ever. It is not enough that PgBouncer does not get into PostgreSQL: customers would not either.
func judge(direct, pooled error) (connect bool, err error) {
	connect = !isConnectMissing(direct)
	switch {
	case connect && direct != nil:
		return connect, notAccepted(direct)
	case errors.Is(pooled, pooler.ErrNoSession), errors.Is(pooled, pooler.ErrNoServer):
		return connect, nil
	case !connect && errors.Is(pooled, pooler.ErrFailing):
		return connect, nil
	case errors.Is(pooled, pooler.ErrFailing):
		return connect, &command.Refusal{
			Reason: command.ReasonUnavailable, Message: "PgBouncer does not get into PostgreSQL as the login; send the command again",
			Cause: pooled,
		}
	}
	return connect, notAccepted(pooled)
}

// proveRefused demands that a password gets in neither directly nor at an entry of the pooler.
func (x *Logins) proveRefused(ctx context.Context, l loginRow, password string) error {
	var ways errgroup.Group
	ways.Go(func() error {
		return x.patiently(ctx, func(ctx context.Context) error {
			switch err := x.proveDirectly(ctx, l, password); {
			case err == nil, isConnectMissing(err):
				return pooler.ErrAdmitted
			case errors.Is(err, pooler.ErrRefused):
				return nil
			default:
				return err
			}
		})
	})
	for _, entry := range pooler.EntryNames(l.db.Name) {
		ways.Go(func() error {
			return x.patiently(ctx, func(ctx context.Context) error { return x.pooler.ProveRefused(ctx, entry, l.name, password) })
		})
	}
	err := ways.Wait()
	if errors.Is(err, pooler.ErrAdmitted) {
		return ledger.Unavailable("the old password still gets in; send the command again", err)
	}
	return err
}

func notAccepted(err error) error {
	if errors.Is(err, pooler.ErrRefused) {
		return &command.Refusal{Reason: command.ReasonFailed, Message: "the login could not log in with its new password", Cause: err}
	}
	return err
}

// patiently tries until a log-in has an answer of its own, for at most proofTime.
func (x *Logins) patiently(ctx context.Context, prove func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	for {
		if err = moreTelling(err, prove(ctx)); err == nil || isAnswered(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(proofPause):
		}
	}
}

// moreTelling is the outcome of the later of two attempts, unless that broke off and the earlier was seen to be accepted.
func moreTelling(before, now error) error {
	if isAccepted(before) && now != nil && !isAccepted(now) && !isAnswered(now) {
		return before
	}
	return now
}

func isAccepted(err error) bool {
	return errors.Is(err, pooler.ErrNoServer) || errors.Is(err, pooler.ErrFailing) || errors.Is(err, pooler.ErrNoSession)
}

// isAnswered reports whether a log-in was decided by what it was, and another attempt would show nothing else.
func isAnswered(err error) bool {
	if errors.Is(err, pooler.ErrFailing) {
		return false // it may only be remembered
	}
	return errors.Is(err, pooler.ErrRefused) || errors.Is(err, pooler.ErrAdmitted) || errors.Is(err, pooler.ErrNoSession) ||
		isConnectMissing(err)
}

// proveDirectly logs in to PostgreSQL at the address that the pooler uses. A refusal of the log-in itself is pooler.ErrRefused.
func (x *Logins) proveDirectly(ctx context.Context, l loginRow, password string) error {
	config := x.server.Config(l.db.Name)
	config.User, config.Password, config.ApplicationName = l.name, password, "pgherd-proof"
	config.Runtime = map[string]string{"local_preload_libraries": ""} // not what the login has set, see pooler.ErrNoSession
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		if strings.HasPrefix(pg.State(err), "28") {
			return fmt.Errorf("%w: directly, login %s: %w", pooler.ErrRefused, l.name, err)
		}
		return err
	}
	_ = conn.Close() // it has served
	return nil
}

// isConnectMissing reports whether a direct log-in got as far as the database, which it may not enter: PostgreSQL asks for the
// password first.
func isConnectMissing(err error) bool { return pg.State(err) == pg.InsufficientPrivilege }
