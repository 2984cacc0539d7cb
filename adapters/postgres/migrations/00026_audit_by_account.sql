-- An account's log is read together with that of its databases. The index is made while hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_by_account;
CREATE INDEX CONCURRENTLY audit_entries_by_account ON audit_entries (account_id, at, id) WHERE account_id IS NOT NULL;
