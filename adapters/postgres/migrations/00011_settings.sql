-- What the service sets in a database for its logins: the wanted profile of query timeouts, the one that the server is known to
-- have, and what the quota of bytes does. All of it is sent together, under one generation. Hosts of the version before insert
-- and save without these columns.

-- +goose Up

ALTER TABLE databases
    ADD COLUMN settings_generation bigint NOT NULL DEFAULT 0 CHECK (settings_generation >= 0),
    ADD COLUMN settings_applied    bigint NOT NULL DEFAULT 0 CHECK (settings_applied >= 0),
    ADD COLUMN timeout_profile     text NOT NULL DEFAULT 'not_configured'
        CHECK (timeout_profile IN ('not_configured', 'standard', 'balanced', 'short')),
    ADD COLUMN timeout_effective   text NOT NULL DEFAULT 'not_configured'
        CHECK (timeout_effective IN ('not_configured', 'standard', 'balanced', 'short')),
    ADD COLUMN timeout_operation   uuid,
    ADD COLUMN storage_status      text NOT NULL DEFAULT 'ok' CHECK (storage_status IN ('ok', 'full', 'closed'));

CREATE INDEX databases_settings_due ON databases (id) WHERE settings_applied < settings_generation;
