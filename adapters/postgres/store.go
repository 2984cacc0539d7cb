package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/adapters/postgres/admissions"
	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/ports"
)

// Config says where the metadata database is and how much of its server one process may use.
type Config = pgdb.Config

// Store implements ports.Store and ports.Admissions. It is safe for concurrent use.
type Store struct {
	*pgdb.DB
	admissions.Admissions
}

// Open connects, checks that this program works with the schema, and prepares every statement unless Brief says otherwise. The
// errors are pgdb.ErrURL, pgdb.ErrTarget, ErrSchemaOlder, ErrSchemaNewer, ErrSchemaUnreleased, or those of the connection.
func Open(ctx context.Context, c Config) (*Store, error) {
	opened, err := pgdb.Open(ctx, c, broken, func(ctx context.Context, pool *sqlx.DB) error {
		return checkSchema(ctx, pool, migrationFiles)
	})
	if pq.As(err, pqerror.UndefinedTable, pqerror.UndefinedColumn) != nil { // of the same version, and not what that became
		return nil, ErrSchemaUnreleased
	}
	if err != nil {
		return nil, err
	}
	return &Store{opened, admissions.On(opened)}, nil
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

func (s tx) Accounts() ports.Accounts         { return accounts{accountTable.Rows(s.Session)} }
func (s tx) Directory() ports.Directory       { return directory(s) }
func (s tx) Members() ports.Members           { return members(s) }
func (s tx) Invitations() ports.Invitations   { return invitations{invitationTable.Rows(s.Session)} }
func (s tx) Sessions() ports.Sessions         { return sessions{sessionTable.Rows(s.Session)} }
func (s tx) Passkeys() ports.Passkeys         { return passkeys{passkeyTable.Rows(s.Session)} }
func (s tx) Operators() ports.Operators       { return operators(s) }
func (s tx) Identities() ports.Identities     { return identities{identityTable.Rows(s.Session)} }
func (s tx) Credentials() ports.Credentials   { return credentials{factorTable.Rows(s.Session)} }
func (s tx) Keys() ports.Keys                 { return keys{keyTable.Rows(s.Session)} }
func (s tx) Namespaces() ports.Namespaces     { return namespaces{namespaceTable.Rows(s.Session)} }
func (s tx) Trusts() ports.Trusts             { return trusts{trustTable.Rows(s.Session)} }
func (s tx) Databases() ports.Databases       { return databases{databaseTable.Rows(s.Session)} }
func (s tx) BackupKeys() ports.BackupKeys     { return backupKeys{backupKeyTable.Rows(s.Session)} }
func (s tx) Logins() ports.Logins             { return logins{loginTable.Rows(s.Session)} }
func (s tx) Roles() ports.Roles               { return roles{roleTable.Rows(s.Session)} }
func (s tx) RoleChanges() ports.RoleChanges   { return roleChanges{roleChangeTable.Rows(s.Session)} }
func (s tx) Allowlist() ports.Allowlist       { return allowlist{allowlistTable.Rows(s.Session)} }
func (s tx) Backups() ports.Backups           { return backups{backupTable.Rows(s.Session)} }
func (s tx) Operations() ports.Operations     { return operations{operationTable.Rows(s.Session)} }
func (s tx) Uses() ports.Uses                 { return uses{useTable.Rows(s.Session)} }
func (s tx) Storage() ports.Storage           { return storage(s) }
func (s tx) Usage() ports.Usage               { return usages(s) }
func (s tx) Idempotency() ports.Idempotency   { return idempotencyKeys{keyRecordTable.Rows(s.Session)} }
func (s tx) Audit() ports.Audit               { return auditEntries{auditTable.Rows(s.Session)} }
func (s tx) Outbox() ports.Outbox             { return outbox{outboxTable.Rows(s.Session)} }
func (s tx) Servers() ports.Servers           { return servers{serverTable.Rows(s.Session)} }
func (s tx) Switches() ports.Switches         { return switches(s) }
func (s tx) SealedValues() ports.SealedValues { return sealedValues(s) }
func (s tx) Webhooks() ports.Webhooks         { return webhooks{webhookTable.Rows(s.Session)} }
func (s tx) Deliveries() ports.Deliveries     { return deliveries{deliveryTable.Rows(s.Session)} }
func (s tx) Mails() ports.Mails               { return mails{mailTable.Rows(s.Session)} }
func (s tx) Qualifications() ports.Qualifications {
	return qualifications{qualificationTable.Rows(s.Session)}
}
func (s tx) SigningKeys() ports.SigningKeys { return signingKeys{signingKeyTable.Rows(s.Session)} }
func (s tx) Drills() ports.Drills           { return drills{drillTable.Rows(s.Session)} }
func (s tx) Forwards() ports.Forwards       { return forwards{forwardTable.Rows(s.Session)} }
func (s tx) Rehearsals() ports.Rehearsals   { return rehearsals{rehearsalTable.Rows(s.Session)} }
func (s tx) Drains() ports.Drains           { return drains{drainTable.Rows(s.Session)} }
func (s tx) KeyRings() ports.KeyRings       { return keyRings{ringKeyTable.Rows(s.Session)} }
func (s tx) Uploads() ports.Uploads         { return uploads{uploadTable.Rows(s.Session)} }
func (s tx) Previews() ports.Previews       { return previews{previewTable.Rows(s.Session)} }
func (s tx) Deletions() ports.Deletions     { return deletions{tombstoneTable.Rows(s.Session)} }
func (s tx) Retention() ports.Retention     { return ages(s) }
