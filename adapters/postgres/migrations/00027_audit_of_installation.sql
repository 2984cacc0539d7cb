-- The log of what concerns no account. The index is made while hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_of_installation;
CREATE INDEX CONCURRENTLY audit_entries_of_installation ON audit_entries (at, id) WHERE account_id IS NULL AND database_id IS NULL;
