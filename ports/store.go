package ports

import "context"

// Store is the metadata database.
type Store interface {
	// Update runs fn in one read-write transaction. fn may run again after a serialization failure or a deadlock, so it must not
	// have effects outside the transaction or call anything over the network. An error of fn rolls the transaction back and is
	// returned.
	Update(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// View runs fn without a transaction: each statement sees what is committed when it starts.
	View(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
}

// Read runs fn in a View, and returns what it has read.
func Read[T any](ctx context.Context, s Store, fn func(ctx context.Context, tx Tx) (T, error)) (v T, err error) {
	err = s.View(ctx, func(ctx context.Context, tx Tx) (err error) {
		v, err = fn(ctx, tx)
		return err
	})
	return v, err
}

// Tx hands out the repositories. Writing through a Tx of View is an error.
type Tx interface {
	Accounts() Accounts
	Directory() Directory
	Members() Members
	Invitations() Invitations
	Sessions() Sessions
	Credentials() Credentials
	Passkeys() Passkeys
	Operators() Operators
	Identities() Identities
	Keys() Keys
	Namespaces() Namespaces
	Trusts() Trusts
	Databases() Databases
	Logins() Logins
	BackupKeys() BackupKeys
	Roles() Roles
	RoleChanges() RoleChanges
	Allowlist() Allowlist
	Backups() Backups
	Operations() Operations
	Uses() Uses
	Storage() Storage
	Usage() Usage
	Idempotency() Idempotency
	Audit() Audit
	Outbox() Outbox
	Servers() Servers
	Switches() Switches
	SealedValues() SealedValues
	Webhooks() Webhooks
	Deliveries() Deliveries
	Mails() Mails
	Qualifications() Qualifications
	SigningKeys() SigningKeys
	Drills() Drills
	Forwards() Forwards
	Rehearsals() Rehearsals
	Drains() Drains
	KeyRings() KeyRings
	Uploads() Uploads
	Previews() Previews
	Deletions() Deletions
	Retention() Retention
}
