package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
)

// proofTime bounds the proof of one password with all its attempts. In a full pool a log-in waits like any client.
const proofTime = 10 * time.Second

// proofPause is between two attempts where one failed for another reason than the log-in itself.
const proofPause = 100 * time.Millisecond

// proveAccepted logs in directly and through the pooler. Where the password is right, but the owner has withdrawn CONNECT,
// connect is false. An error that nobody knows the reason of is "unavailable".
func (x *Executor) proveAccepted(ctx context.Context, l loginRow, password string) (connect bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	var direct, pooled error
	prove := func(ctx context.Context) error { return x.pooler.Prove(ctx, l.db.Name, l.name, password) }
	var ways errgroup.Group
	ways.Go(func() error {
		direct = x.patiently(ctx, func(ctx context.Context) error { return x.proveDirectly(ctx, l, password) })
		return nil
	})
	ways.Go(func() error {
		pooled = prove(ctx)
		return nil
	})
	_ = ways.Wait() // both are judged below
	if direct == nil && pooled != nil && !isAnswered(pooled) {
		pooled = moreTelling(pooled, x.patiently(ctx, prove))
	}
	return judge(direct, pooled)
}

// judge says what the two log-ins show together. One that PgBouncer has accepted and found no server connection for shows enough:
// PostgreSQL was asked directly. Others' clients could otherwise fill the pool, and keep a change from ending, for ever.
func judge(direct, pooled error) (connect bool, err error) {
	connect = !isConnectMissing(direct)
	switch {
	case connect && direct != nil:
		return connect, notAccepted(direct)
	case errors.Is(pooled, pooler.ErrNoSession), errors.Is(pooled, pooler.ErrNoServer):
		return connect, nil
	}
	return connect, notAccepted(pooled)
}

// proveRefused demands that a password gets in neither directly nor at an entry of the pooler.
func (x *Executor) proveRefused(ctx context.Context, l loginRow, password string) error {
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
		return &Refusal{Reason: protocol.ReasonUnavailable, Message: "the old password still gets in; send the command again", cause: err}
	}
	return err
}

func notAccepted(err error) error {
	if errors.Is(err, pooler.ErrRefused) {
		return &Refusal{Reason: protocol.ReasonFailed, Message: "the login could not log in with its new password", cause: err}
	}
	return err
}

// patiently tries until a log-in has an answer of its own, for at most proofTime.
func (x *Executor) patiently(ctx context.Context, prove func(context.Context) error) (err error) {
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
	if errors.Is(before, pooler.ErrNoServer) && now != nil && !isAnswered(now) {
		return before
	}
	return now
}

// isAnswered reports whether a log-in was decided by what it was, and another attempt would show nothing else.
func isAnswered(err error) bool {
	return errors.Is(err, pooler.ErrRefused) || errors.Is(err, pooler.ErrAdmitted) || errors.Is(err, pooler.ErrNoSession) ||
		isConnectMissing(err)
}

// proveDirectly logs in to PostgreSQL at the address that the pooler uses. A refusal of the log-in itself is pooler.ErrRefused.
func (x *Executor) proveDirectly(ctx context.Context, l loginRow, password string) error {
	config := x.server.config(l.db.Name)
	config.User, config.Password, config.ApplicationName = l.name, password, "pgherd-proof"
	config.Runtime = map[string]string{"local_preload_libraries": ""} // not what the login has set, see pooler.ErrNoSession
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		if strings.HasPrefix(sqlState(err), "28") {
			return fmt.Errorf("%w: directly, login %s: %w", pooler.ErrRefused, l.name, err)
		}
		return err
	}
	_ = conn.Close() // it has served
	return nil
}

// isConnectMissing reports whether a direct log-in got as far as the database, which it may not enter: PostgreSQL asks for the
// password first.
func isConnectMissing(err error) bool { return sqlState(err) == insufficientPrivilege }
