-- Changes of logins that have been over for long are deleted, the oldest first. The index is made while hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS role_changes_ended;
CREATE INDEX CONCURRENTLY role_changes_ended ON role_changes (ended_at, id) WHERE ended_at IS NOT NULL;
