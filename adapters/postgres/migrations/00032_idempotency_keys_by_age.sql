-- Old idempotency keys are deleted, the oldest first. The index is made while hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS idempotency_keys_by_age;
CREATE INDEX CONCURRENTLY idempotency_keys_by_age ON idempotency_keys (created_at, resource_id);
