package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/ports"
)

// Config says where the metadata database is and how much of its server one process may use.
type Config = pgdb.Config

// Store implements ports.Store and ports.Admissions. It is safe for concurrent use.
type Store struct{ *pgdb.DB }

// Open connects, checks that this program works with the schema, and prepares every statement unless Brief says otherwise. The
// errors are pgdb.ErrURL, pgdb.ErrTarget, ErrSchemaOlder, ErrSchemaNewer, ErrSchemaUnreleased, or those of the connection.
func Open(ctx context.Context, c Config) (*Store, error) {
	opened, err := pgdb.Open(ctx, c, broken, func(ctx context.Context, pool *sqlx.DB) error {
		return checkSchema(ctx, pool, migrationFiles)
	})
	if err != nil {
		return nil, err
	}
	return &Store{opened}, nil
}

// Update implements ports.Store: fn runs again where it lost a race or its connection, before the commit.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.DB.Update(ctx, func(ctx context.Context, on pgdb.Session) error { return fn(ctx, tx{on}) })
}

// View runs fn without a transaction. A statement whose connection was lost is sent again.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return fn(ctx, tx{s.DB.View()})
}

// tx hands out the repositories of a transaction or a view.
type tx struct{ pgdb.Session }

func (s tx) Accounts() ports.Accounts             { return accounts{s.Session} }
func (s tx) Directory() ports.Directory           { return directory{s.Session} }
func (s tx) Members() ports.Members               { return members{s.Session} }
func (s tx) Invitations() ports.Invitations       { return invitations{s.Session} }
func (s tx) Keys() ports.Keys                     { return keys{s.Session} }
func (s tx) Namespaces() ports.Namespaces         { return namespaces{s.Session} }
func (s tx) Trusts() ports.Trusts                 { return trusts{s.Session} }
func (s tx) Databases() ports.Databases           { return databases{s.Session} }
func (s tx) Logins() ports.Logins                 { return logins{s.Session} }
func (s tx) Roles() ports.Roles                   { return roles{s.Session} }
func (s tx) RoleChanges() ports.RoleChanges       { return roleChanges{s.Session} }
func (s tx) Allowlist() ports.Allowlist           { return allowlist{s.Session} }
func (s tx) Backups() ports.Backups               { return backups{s.Session} }
func (s tx) Operations() ports.Operations         { return operations{s.Session} }
func (s tx) Uses() ports.Uses                     { return uses{s.Session} }
func (s tx) Storage() ports.Storage               { return storage{s.Session} }
func (s tx) Idempotency() ports.Idempotency       { return idempotencyKeys{s.Session} }
func (s tx) Audit() ports.Audit                   { return auditEntries{s.Session} }
func (s tx) Outbox() ports.Outbox                 { return outbox{s.Session} }
func (s tx) Servers() ports.Servers               { return servers{s.Session} }
func (s tx) Switches() ports.Switches             { return switches{s.Session} }
func (s tx) SealedValues() ports.SealedValues     { return sealedValues{s.Session} }
func (s tx) Webhooks() ports.Webhooks             { return webhooks{s.Session} }
func (s tx) Deliveries() ports.Deliveries         { return deliveries{s.Session} }
func (s tx) Mails() ports.Mails                   { return mails{s.Session} }
func (s tx) Qualifications() ports.Qualifications { return qualifications{s.Session} }
func (s tx) SigningKeys() ports.SigningKeys       { return signingKeys{s.Session} }
func (s tx) KeyRings() ports.KeyRings             { return keyRings{s.Session} }
func (s tx) Uploads() ports.Uploads               { return uploads{s.Session} }
func (s tx) Previews() ports.Previews             { return previews{s.Session} }
func (s tx) Deletions() ports.Deletions           { return deletions{s.Session} }
func (s tx) Retention() ports.Retention           { return ages{s.Session} }
