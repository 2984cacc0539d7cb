package pooler

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
)

// ErrAdmitted is what ProveRefused returns when the log-in works.
var ErrAdmitted = errors.New("pooler: a log-in that should be refused works")

// ErrRefused is wrapped by Prove's error when PgBouncer or PostgreSQL refused the log-in itself; any other error proves nothing
// about the password.
var ErrRefused = errors.New("pooler: log-in refused")

// ErrNoServer is wrapped by Prove's error when PgBouncer accepted the password but got no server connection: the pool is full,
// or PostgreSQL no longer lets the login in.
var ErrNoServer = errors.New("pooler: log-in accepted, but no server connection for it")

// ErrNoSession is wrapped by Prove's error when PgBouncer accepted the password and then ended the connection, because
// PostgreSQL could not begin a session: a login can set libraries to be preloaded that do not exist.
var ErrNoSession = errors.New("pooler: log-in accepted, but PostgreSQL begins no session for it")

// Prove logs in at an entry through the unix socket and asks PostgreSQL for its version, a statement that takes no snapshot,
// because a login's settings may make its transactions wait for a safe snapshot, which other transactions can delay forever. If
// the pool is full, it waits for a server connection like any client, until ctx ends.
func (c *Console) Prove(ctx context.Context, entry, login, password string) error {
	s, err := dial(ctx, c.settings, entry, login, password)
	if err == nil {
		defer s.close()
		if err = s.each(ctx, "SHOW server_version_num", func(row) error { return nil }); err == nil {
			return nil
		}
		if errors.Is(err, driver.ErrBadConn) && ctx.Err() == nil {
			return fmt.Errorf("%w: entry %s, login %s: %w", ErrNoSession, entry, login, err)
		}
		return fmt.Errorf("%w: entry %s, login %s: %w", ErrNoServer, entry, login, err)
	}
	switch accepted := errors.Is(err, errAccepted); {
	case accepted && isSpoilt(err):
		return fmt.Errorf("%w: entry %s, login %s: %w", ErrNoSession, entry, login, err)
	case accepted:
		return fmt.Errorf("%w: entry %s, login %s: %w", ErrNoServer, entry, login, err)
	case isRefusal(err):
		return fmt.Errorf("%w: entry %s, login %s: %w", ErrRefused, entry, login, err)
	}
	return fmt.Errorf("pooler: no log-in at entry %s as %s: %w", entry, login, err)
}

// ProveRefused returns nil only when the log-in was refused for a definite reason: wrong password, closed gate, unknown login.
// It returns ErrAdmitted when the password was accepted, and another error when nothing was proved.
func (c *Console) ProveRefused(ctx context.Context, entry, login, password string) error {
	switch err := c.Prove(ctx, entry, login, password); {
	case err == nil, errors.Is(err, ErrNoServer), errors.Is(err, ErrNoSession):
		return fmt.Errorf("%w: entry %s, login %s", ErrAdmitted, entry, login)
	case errors.Is(err, ErrRefused):
		return nil
	default:
		return err
	}
}

// refusals are PgBouncer's messages. It uses the SQLSTATE of a protocol violation for every refusal, and also for a full or
// failing pool, so only the messages distinguish them.
var refusals = []string{
	"no such user", "SASL authentication failed", "password authentication failed", "login rejected",
	"no authentication method is found",
}

// isSpoilt reports whether PostgreSQL, asked after PgBouncer has accepted the password, could not preload what the login set.
func isSpoilt(err error) bool {
	var answer *pq.Error
	return errors.As(err, &answer) &&
		(strings.Contains(answer.Message, "could not access file") || strings.Contains(answer.Message, "access to library"))
}

func isRefusal(err error) bool {
	var answer *pq.Error
	if !errors.As(err, &answer) {
		return false
	}
	if strings.HasPrefix(answer.Message, "server login has been failing") {
		return false // about an earlier attempt, perhaps another's
	}
	if answer.Code.Class() == "28" { // PostgreSQL's invalid authorization
		return true
	}
	for _, words := range refusals {
		if strings.Contains(answer.Message, words) {
			return true
		}
	}
	return false
}
