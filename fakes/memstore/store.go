package memstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// ErrEnded means that a statement or a commit came after an error that has aborted its transaction.
var ErrEnded = errors.New("the transaction has ended by an earlier error")

// Store implements ports.Store, ports.Admissions and ports.Notifier. It is safe for concurrent use.
type Store struct {
	turn      chan struct{} // whoever has its one token may write
	committed atomic.Pointer[state]
	rerun     bool

	workers, dispatchers ports.Sleepers

	mu      sync.Mutex // of what follows, which belongs to no transaction
	buckets map[string]*ratelimit.Bucket
	windows map[string]*window
	used    map[id.KeyID]time.Time
}

// New makes an empty store.
func New() *Store {
	s := &Store{
		turn: make(chan struct{}, 1), buckets: map[string]*ratelimit.Bucket{}, windows: map[string]*window{},
		used: map[id.KeyID]time.Time{},
	}
	s.committed.Store(&state{})
	return s
}

// NewRerunning makes an empty store that runs every update twice and discards the first run, as a server does with the victim
// of a deadlock. This reveals use cases with effects outside their transaction.
func NewRerunning() *Store {
	s := New()
	s.rerun = true
	return s
}

// Update runs fn alone, on a copy that takes the place of what was stored where fn succeeds.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.rerun {
		_ = fn(ctx, session{store: s, tx: &transaction{state: s.committed.Load().begin()}}) // this run never happened
	}
	tx := &transaction{state: s.committed.Load().begin()}
	if err := fn(ctx, session{store: s, tx: tx}); err != nil {
		return err
	}
	if err := errors.Join(ctx.Err(), tx.ended); err != nil {
		return err
	}
	s.committed.Store(tx.state)
	if tx.queued {
		s.workers.WakeAll()
	}
	if tx.announced {
		s.dispatchers.WakeAll()
	}
	return nil
}

// View runs fn; each of its statements sees what is committed when it starts.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return fn(ctx, session{store: s})
}

// Backup remembers all that is stored, and returns what restores it.
func (s *Store) Backup() (restore func()) {
	then := s.committed.Load()
	return func() {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		s.committed.Store(then)
	}
}

// damage changes what is stored behind the back of all transactions.
func (s *Store) damage(how func(now *state)) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	now := s.committed.Load().begin()
	how(now)
	s.committed.Store(now)
}

// Events returns what is in the outbox, oldest first.
func (s *Store) Events() []ports.OutboxEvent {
	return s.committed.Load().events.having(every, byCreation)
}

// transaction is the copy that an update works on.
type transaction struct {
	state     *state
	queued    bool  // work was queued: wake the workers on commit
	announced bool  // an event or a delivery waits: wake the dispatchers on commit
	ended     error // why nothing more can happen
}

// session runs statements: in a transaction, or each by itself where tx is nil.
type session struct {
	store *Store
	tx    *transaction
}

// reading returns the state that a statement reads.
func (s session) reading(ctx context.Context) (*state, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.tx == nil:
		return s.store.committed.Load(), nil
	case s.tx.ended != nil:
		return nil, s.tx.ended
	}
	return s.tx.state, nil
}

// writing returns the state that a statement writes; a view has none.
func (s session) writing(ctx context.Context) (*state, error) {
	if s.tx == nil {
		return nil, ports.ErrReadOnly
	}
	return s.reading(ctx)
}

// read runs a statement that reads.
func read[T any](ctx context.Context, s session, statement func(*state) (T, error)) (none T, _ error) {
	state, err := s.reading(ctx)
	if err != nil {
		return none, err
	}
	return statement(state)
}

// write runs a statement that writes, and has a result.
func write[T any](ctx context.Context, s session, statement func(*state) (T, error)) (none T, _ error) {
	state, err := s.writing(ctx)
	if err != nil {
		return none, err
	}
	return statement(state)
}

// write runs a statement that writes.
func (s session) write(ctx context.Context, statement func(*state) error) error {
	state, err := s.writing(ctx)
	if err != nil {
		return err
	}
	return statement(state)
}

// refuse ends the transaction, as a broken constraint does.
func (s session) refuse(err error) error {
	s.tx.ended = ErrEnded
	return err
}

// The repositories of a transaction or a view.
func (s session) Accounts() ports.Accounts             { return accounts{s} }
func (s session) Directory() ports.Directory           { return directory{s} }
func (s session) Members() ports.Members               { return members{s} }
func (s session) Invitations() ports.Invitations       { return invitations{s} }
func (s session) Sessions() ports.Sessions             { return sessions{s} }
func (s session) Operators() ports.Operators           { return operators{s} }
func (s session) Passkeys() ports.Passkeys             { return passkeys{s} }
func (s session) Identities() ports.Identities         { return identities{s} }
func (s session) Credentials() ports.Credentials       { return credentials{s} }
func (s session) Keys() ports.Keys                     { return keys{s} }
func (s session) Namespaces() ports.Namespaces         { return namespaces{s} }
func (s session) Trusts() ports.Trusts                 { return trusts{s} }
func (s session) Databases() ports.Databases           { return databases{s} }
func (s session) BackupKeys() ports.BackupKeys         { return backupKeys{s} }
func (s session) Logins() ports.Logins                 { return logins{s} }
func (s session) Roles() ports.Roles                   { return roles{s} }
func (s session) RoleChanges() ports.RoleChanges       { return roleChanges{s} }
func (s session) Allowlist() ports.Allowlist           { return allowlist{s} }
func (s session) Backups() ports.Backups               { return backups{s} }
func (s session) Operations() ports.Operations         { return operations{s} }
func (s session) Uses() ports.Uses                     { return uses{s} }
func (s session) Storage() ports.Storage               { return storage{s} }
func (s session) Drills() ports.Drills                 { return drills{s} }
func (s session) Forwards() ports.Forwards             { return forwards{s} }
func (s session) Rehearsals() ports.Rehearsals         { return rehearsals{s} }
func (s session) Drains() ports.Drains                 { return drains{s} }
func (s session) Usage() ports.Usage                   { return usages{s} }
func (s session) Idempotency() ports.Idempotency       { return requests{s} }
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
