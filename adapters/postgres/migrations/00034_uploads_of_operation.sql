-- Whether an upload is for an operation that is about to be deleted. The index is made while hosts write; see Migrate.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS uploads_of_operation;
CREATE INDEX CONCURRENTLY uploads_of_operation ON uploads (operation_id) WHERE operation_id IS NOT NULL;
