-- Quotas of bytes. An account has an operator's exceptions to those of its plan. "storage_ceiling" is the size above which a
-- database that an operator has opened is closed again; 0: the rule's own. Hosts of the version before insert and save without
-- these columns. A database that is there already is full at most, and not closed, until it has twice its size.

-- +goose Up

ALTER TABLE accounts
    ADD COLUMN database_bytes bigint CHECK (database_bytes > 0),
    ADD COLUMN backup_bytes   bigint CHECK (backup_bytes > 0);

ALTER TABLE databases ADD COLUMN storage_ceiling bigint NOT NULL DEFAULT 0 CHECK (storage_ceiling >= 0);

UPDATE databases SET storage_ceiling = 2 * size_bytes WHERE size_bytes > 0;
