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

// proofTime bounds one proof log-in with all its attempts. In a full pool it waits like any client; what it could not prove by
// then is proven when the command comes again.
const proofTime = 10 * time.Second

// proofPause is between two attempts where one failed for another reason than the log-in itself.
const proofPause = 100 * time.Millisecond

// proveAccepted logs in directly and through the pooler, side by side. Where the password is right, but the owner has withdrawn
// CONNECT, connect is false. An error that nobody knows the reason of is "unavailable".
func (x *Executor) proveAccepted(ctx context.Context, l loginRow, password string) (connect bool, err error) {
	var direct, pooled error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		direct = x.patiently(ctx, func(ctx context.Context) error { return x.proveDirectly(ctx, l, password) })
	}()
	pooled = x.patiently(ctx, func(ctx context.Context) error {
		err := x.pooler.Prove(ctx, l.db.Name, l.name, password)
		if errors.Is(err, pooler.ErrNoServer) {
			<-answered
		}
		if errors.Is(err, pooler.ErrNoSession) || errors.Is(err, pooler.ErrNoServer) && isConnectMissing(direct) {
			return nil // PgBouncer has accepted the password, and PostgreSQL we have asked
		}
		return err
	})
	<-answered
	if connect = !isConnectMissing(direct); connect && direct != nil {
		return connect, notAccepted(direct)
	}
	return connect, notAccepted(pooled)
}

// proveRefused demands that a password gets in neither directly nor through the pooler.
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
	ways.Go(func() error {
		return x.patiently(ctx, func(ctx context.Context) error {
			return x.pooler.ProveRefused(ctx, l.db.Name, l.name, password)
		})
	})
	err := ways.Wait()
	if errors.Is(err, pooler.ErrAdmitted) {
		return &Refusal{protocol.ReasonUnavailable, "the old password still gets in; send the command again", err}
	}
	return err
}

func notAccepted(err error) error {
	if errors.Is(err, pooler.ErrRefused) {
		return &Refusal{protocol.ReasonFailed, "the login could not log in with its new password", err}
	}
	return err
}

// patiently tries until a log-in has an answer of its own, for at most proofTime.
func (x *Executor) patiently(ctx context.Context, prove func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	for {
		err := prove(ctx)
		if err == nil || errors.Is(err, pooler.ErrRefused) || errors.Is(err, pooler.ErrAdmitted) || isConnectMissing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(proofPause):
		}
	}
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
