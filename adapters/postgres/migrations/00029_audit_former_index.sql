-- Hosts of the version before read an account's log by audit_entries_by_account too.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_of_account;
