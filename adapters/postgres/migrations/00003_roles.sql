-- Additional roles of managed databases, and changes of logins.

-- +goose Up

ALTER TABLE databases
    ADD COLUMN role_generation bigint  NOT NULL DEFAULT 0,
    ADD COLUMN role_ordinal    integer NOT NULL DEFAULT 0,
    ADD COLUMN roles_barred    boolean NOT NULL DEFAULT false;
ALTER TABLE databases
    ALTER COLUMN role_generation DROP DEFAULT,
    ALTER COLUMN role_ordinal DROP DEFAULT,
    ALTER COLUMN roles_barred DROP DEFAULT;

-- A removed role stays: neither its ordinal nor its key is used again.
CREATE TABLE roles (
    id                    uuid PRIMARY KEY,
    database_id           uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    ordinal               integer NOT NULL CHECK (ordinal > 0),
    username              text NOT NULL,
    display_name          text NOT NULL,
    access_profile        text NOT NULL CHECK (access_profile IN ('read_only', 'read_write', 'custom')),
    connection_limit      integer NOT NULL CHECK (connection_limit > 0),
    status                text NOT NULL CHECK (status IN
                          ('reserved', 'sql_ready', 'ready', 'updating', 'revoked', 'expired', 'removed')),
    created_at            timestamptz NOT NULL,
    idempotency_key       text NOT NULL,
    fingerprint           text NOT NULL,
    setup_id              uuid NOT NULL,
    generation            bigint NOT NULL CHECK (generation > 0),
    change_id             uuid,
    credential_generation bigint NOT NULL CHECK (credential_generation > 0),
    credential_expires_at timestamptz,
    verifier              text NOT NULL,
    sealed                bytea,
    CONSTRAINT roles_ordinal_unique UNIQUE (database_id, ordinal),
    CONSTRAINT roles_key_unique UNIQUE (database_id, idempotency_key),
    CONSTRAINT roles_username_unique UNIQUE (username),
    CONSTRAINT roles_secret CHECK ((sealed IS NULL) = (verifier = '') AND (sealed IS NULL) = (status IN ('revoked', 'removed')))
);
CREATE INDEX roles_listed ON roles (database_id, ordinal) WHERE status <> 'removed';
CREATE INDEX roles_expiring ON roles (credential_expires_at, id) WHERE status = 'ready' AND credential_expires_at IS NOT NULL;

-- Exactly one of role_id and login is set.
CREATE TABLE role_changes (
    id                    uuid PRIMARY KEY,
    database_id           uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    role_id               uuid REFERENCES roles ON DELETE CASCADE,
    login                 text NOT NULL CHECK (login IN ('', 'owner', 'runtime', 'readonly')),
    username              text NOT NULL,
    kind                  text NOT NULL CHECK (kind IN ('rotate', 'revoke', 'expire', 'remove')),
    status                text NOT NULL CHECK (status IN ('pending', 'completed', 'refused')),
    idempotency_key       text NOT NULL,
    generation            bigint NOT NULL CHECK (generation > 0),
    credential_generation bigint NOT NULL CHECK (credential_generation > 0),
    verifier              text NOT NULL,
    sealed                bytea,
    expires_at            timestamptz,
    revealed              boolean NOT NULL,
    actor                 text NOT NULL,
    request_id            text NOT NULL,
    created_at            timestamptz NOT NULL,
    ended_at              timestamptz,
    attempts              integer NOT NULL,
    not_before            timestamptz NOT NULL,
    CONSTRAINT role_changes_key_unique UNIQUE (database_id, idempotency_key),
    CONSTRAINT role_changes_target CHECK ((role_id IS NULL) = (login <> '')),
    CONSTRAINT role_changes_end CHECK ((ended_at IS NULL) = (status = 'pending')),
    CONSTRAINT role_changes_secret CHECK ((sealed IS NOT NULL) = (status = 'pending' AND kind = 'rotate'))
);
CREATE UNIQUE INDEX role_changes_one_pending ON role_changes (database_id) WHERE status = 'pending';
CREATE INDEX role_changes_of_role ON role_changes (role_id) WHERE role_id IS NOT NULL;
CREATE INDEX role_changes_due ON role_changes (not_before, id) WHERE status = 'pending';
