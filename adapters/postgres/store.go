package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/pgherd/pgherd/ports"
)

// Store implements ports.Store and ports.Admissions. It is safe for concurrent use.
type Store struct {
	db        *sqlx.DB
	connector *connector
	current   atomic.Pointer[prepared]
	patience  time.Duration

	watch   *sqlx.DB // of one connection
	answers atomic.Pointer[answering]

	mu      sync.Mutex // held while statements are prepared
	retired []*prepared
}

// Close ends every connection.
func (s *Store) Close() error { return errors.Join(s.db.Close(), s.watch.Close()) }

// Ping checks that the metadata database answers; a host's readiness depends on it. It fails at once while Watch finds that there
// is no answer.
func (s *Store) Ping(ctx context.Context) error {
	if s.Away() {
		return errAway
	}
	return translate(ctx, s.db.PingContext(ctx))
}

// ErrCommitUnknown means that the connection was lost while a transaction was being committed: it may or may not have been, so
// it is not run again.
var ErrCommitUnknown = errors.New("the connection was lost during the commit, whose outcome is unknown")

// Update runs fn in one transaction. It runs again after a serialization failure or a deadlock, and after the connection
// was lost before the commit: all of these have left nothing behind. Where the context has no deadline, it gets one, and a
// shorter one where the work is awaited.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.again(ctx, func(ctx context.Context) error { return s.transact(ctx, fn) })
}

func (s *Store) transact(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return translate(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // its own error adds nothing to the one returned
	session := session{store: s, set: s.current.Load(), tx: tx}
	if err := fn(ctx, session); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return translate(ctx, ctx.Err())
	}
	return committed(ctx, tx.Commit())
}

// committed interprets the error of a commit. A commit that database/sql itself refused, because the context had ended, was
// never sent.
func committed(ctx context.Context, err error) error {
	unsent := errors.Is(err, sql.ErrTxDone) || ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err == nil || unsent || rolledBack(err) || !disconnected(err) && ctx.Err() == nil {
		return translate(ctx, err)
	}
	return fmt.Errorf("%w: %w: %w", ErrCommitUnknown, ports.ErrUnavailable, err)
}

// View runs fn without a transaction. A statement whose connection was lost is sent again.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return fn(ctx, session{store: s})
}

// The repositories of a transaction or a view.
func (s session) Accounts() ports.Accounts             { return accounts{s} }
func (s session) Directory() ports.Directory           { return directory{s} }
func (s session) Members() ports.Members               { return members{s} }
func (s session) Invitations() ports.Invitations       { return invitations{s} }
func (s session) Keys() ports.Keys                     { return keys{s} }
func (s session) Namespaces() ports.Namespaces         { return namespaces{s} }
func (s session) Trusts() ports.Trusts                 { return trusts{s} }
func (s session) Databases() ports.Databases           { return databases{s} }
func (s session) Logins() ports.Logins                 { return logins{s} }
func (s session) Roles() ports.Roles                   { return roles{s} }
func (s session) RoleChanges() ports.RoleChanges       { return roleChanges{s} }
func (s session) Allowlist() ports.Allowlist           { return allowlist{s} }
func (s session) Backups() ports.Backups               { return backups{s} }
func (s session) Operations() ports.Operations         { return operations{s} }
func (s session) Uses() ports.Uses                     { return uses{s} }
func (s session) Storage() ports.Storage               { return storage{s} }
func (s session) Idempotency() ports.Idempotency       { return idempotencyKeys{s} }
func (s session) Audit() ports.Audit                   { return auditEntries{s} }
func (s session) Outbox() ports.Outbox                 { return outbox{s} }
func (s session) Servers() ports.Servers               { return servers{s} }
func (s session) Switches() ports.Switches             { return switches{s} }
func (s session) SealedValues() ports.SealedValues     { return sealedValues{s} }
func (s session) Webhooks() ports.Webhooks             { return webhooks{s} }
func (s session) Deliveries() ports.Deliveries         { return deliveries{s} }
func (s session) Mails() ports.Mails                   { return mails{s} }
func (s session) Qualifications() ports.Qualifications { return qualifications{s} }
func (s session) SigningKeys() ports.SigningKeys       { return signingKeys{s} }
func (s session) KeyRings() ports.KeyRings             { return keyRings{s} }
func (s session) Uploads() ports.Uploads               { return uploads{s} }
func (s session) Previews() ports.Previews             { return previews{s} }
func (s session) Deletions() ports.Deletions           { return deletions{s} }
func (s session) Retention() ports.Retention           { return ages{s} }
