-- Old entries of every log are found by their time. The index is made while hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_by_age;
CREATE INDEX CONCURRENTLY audit_entries_by_age ON audit_entries (at, id);
