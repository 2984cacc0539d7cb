package pooler

import (
	"context"
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

// ErrNoServer is wrapped by Prove's error when PgBouncer accepted the password, but had no server connection to give until the
// time was over: all that there may be are in use.
var ErrNoServer = errors.New("pooler: log-in accepted, but no server connection for it")

// ErrFailing is wrapped by Prove's error when PgBouncer accepted the password, but did not get into PostgreSQL itself, or
// remembers that it did not earlier, perhaps with another password. It tries again after server_login_retry, but fails every
// log-in until then: for how long the error is right, only later attempts show.
var ErrFailing = errors.New("pooler: log-in accepted, but PgBouncer does not get into PostgreSQL, or did not earlier")

// ErrNoSession is wrapped by Prove's error when PgBouncer accepted the password, but PostgreSQL could not begin a session: a
// login can set libraries to be preloaded that do not exist. Where PgBouncer only remembers that, the error wraps ErrFailing too.
var ErrNoSession = errors.New("pooler: log-in accepted, but PostgreSQL begins no session for it")

// Prove logs in at an entry through the unix socket and has PostgreSQL begin a transaction, which takes no snapshot: a login's
// settings may make its transactions wait for a safe one, which others can delay forever. It leaves in the middle of that
// transaction, so PgBouncer closes the server connection and does not keep it for a time, when it would count against the
// login's limit and could not be used at the other entry. If the pool is full, Prove waits for a server connection like any
// client, until ctx ends.
func (c *Console) Prove(ctx context.Context, entry, login, password string) error {
	s, err := dialInTurn(ctx, c.settings, entry, login, password)
	if err == nil {
		defer s.close()
		s.wire.heard.listen()
		if err = s.each(ctx, "BEGIN", func(row) error { return nil }); err == nil {
			return nil
		}
		return fmt.Errorf("%w: entry %s, login %s: %w", whyNotServed(ctx, s.wire.heard.refusal()), entry, login, err)
	}
	var answer *pq.Error
	said := ""
	if errors.As(err, &answer) {
		said = answer.Message
	}
	switch {
	case errors.Is(err, errAccepted):
		return fmt.Errorf("%w: entry %s, login %s: %w", whyNotServed(ctx, said), entry, login, err)
	case isRefusal(err):
		return fmt.Errorf("%w: entry %s, login %s: %w", ErrRefused, entry, login, err)
	}
	return fmt.Errorf("pooler: no log-in at entry %s as %s: %w", entry, login, err)
}

// remembers begins PgBouncer's message about an earlier attempt, perhaps another's.
const remembers = "server login has been failing"

// errRemembered is a failure to begin sessions that may be over.
var errRemembered = fmt.Errorf("%w: %w", ErrFailing, ErrNoSession)

// whyNotServed says what is shown by a log-in that PgBouncer has accepted, and that PostgreSQL has not answered. said is the
// message that it ended with, empty if it broke off. A log-in that gets no message waits for a server connection: where PgBouncer
// does not get into PostgreSQL, it ends those that wait.
func whyNotServed(ctx context.Context, said string) error {
	waited := strings.Contains(said, "query_wait_timeout") || strings.Contains(said, "client_login_timeout")
	spoilt := strings.Contains(said, "could not access file") || strings.Contains(said, "access to library")
	switch {
	case waited, said == "" && ctx.Err() != nil:
		return ErrNoServer
	case spoilt && strings.HasPrefix(said, remembers):
		return errRemembered
	case spoilt:
		return ErrNoSession
	}
	return ErrFailing
}

// Full reports whether an entry has as many server connections as it may have.
func (c *Console) Full(ctx context.Context, entry string) (full bool, err error) {
	err = c.each(ctx, "SHOW DATABASES", func(r row) error {
		if most := r.number("max_connections"); r.text("name") == entry {
			full = most > 0 && r.number("current_connections") >= most
		}
		return nil
	})
	return full, err
}

// ProveRefused returns nil only when the log-in was refused for a definite reason: wrong password, closed gate, unknown login.
// It returns ErrAdmitted when the password was accepted, and another error when nothing was proved.
func (c *Console) ProveRefused(ctx context.Context, entry, login, password string) error {
	switch err := c.Prove(ctx, entry, login, password); {
	case err == nil, errors.Is(err, ErrNoServer), errors.Is(err, ErrNoSession), errors.Is(err, ErrFailing):
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

func isRefusal(err error) bool {
	var answer *pq.Error
	if !errors.As(err, &answer) {
		return false
	}
	if strings.HasPrefix(answer.Message, remembers) {
		return false
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
