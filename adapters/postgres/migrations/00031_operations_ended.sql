-- Operations that have been over for long are deleted, the oldest first; see package retention of the core. The index is made while
-- hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS operations_ended;
CREATE INDEX CONCURRENTLY operations_ended ON operations (finished_at, id) WHERE finished_at IS NOT NULL;
