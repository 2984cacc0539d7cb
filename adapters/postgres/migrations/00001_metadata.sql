-- The metadata of the service. Times come from the Clock port, so no column has a time as its default. The CHECK
-- constraints repeat the states of the core's machines; a test compares the two.

-- +goose Up

CREATE TABLE users (
    id         uuid PRIMARY KEY,
    email      text NOT NULL,
    name       text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT users_email_unique UNIQUE (email)
);

CREATE TABLE accounts (
    id                  uuid PRIMARY KEY,
    owner_id            uuid NOT NULL REFERENCES users,
    plan                text NOT NULL CHECK (plan IN ('free', 'pro', 'business')),
    created_at          timestamptz NOT NULL,
    max_databases       integer CHECK (max_databases >= 0),
    connection_cap      integer CHECK (connection_cap > 0),
    backup_days         integer CHECK (backup_days > 0),
    verify_backups      boolean,
    credential_validity bigint CHECK (credential_validity >= 0), -- nanoseconds
    CONSTRAINT accounts_owner_unique UNIQUE (owner_id)
);

CREATE TABLE ci_namespaces (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    name       text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT ci_namespaces_name_unique UNIQUE (account_id, name)
);

CREATE TABLE api_keys (
    id           text COLLATE "C" PRIMARY KEY CHECK (length(id) = 8),
    kind         text NOT NULL CHECK (kind IN ('account', 'ci')),
    account_id   uuid NOT NULL REFERENCES accounts,
    user_id      uuid NOT NULL REFERENCES users,
    namespace_id uuid REFERENCES ci_namespaces CHECK ((namespace_id IS NOT NULL) = (kind = 'ci')),
    label        text NOT NULL,
    scope        text NOT NULL CHECK (scope IN ('full', 'selected')),
    hash         bytea NOT NULL CHECK (length(hash) = 32),
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_keys_of_account ON api_keys (account_id, created_at, id);

CREATE TABLE servers (
    id            uuid PRIMARY KEY,
    name          text COLLATE "C" NOT NULL,
    agent_url     text NOT NULL,
    sealed_secret bytea NOT NULL,
    ca            text NOT NULL,
    public_host   text NOT NULL,
    public_port   integer NOT NULL CHECK (public_port BETWEEN 1 AND 65535),
    capacity      integer NOT NULL CHECK (capacity >= 0),
    enabled       boolean NOT NULL,
    created_at    timestamptz NOT NULL,
    CONSTRAINT servers_name_unique UNIQUE (name)
);

CREATE TABLE databases (
    id                   uuid PRIMARY KEY,
    account_id           uuid NOT NULL REFERENCES accounts,
    server_id            uuid NOT NULL REFERENCES servers,
    name                 text NOT NULL,
    display_name         text NOT NULL,
    role_model           text NOT NULL CHECK (role_model IN ('managed', 'single_login')),
    environment          text NOT NULL CHECK (environment IN ('', 'production', 'staging', 'development', 'other')),
    schedule             text NOT NULL CHECK (schedule IN ('none', 'daily')),
    status               text NOT NULL CHECK (status IN ('creating', 'active', 'stopped', 'deleting', 'error')),
    created_at           timestamptz NOT NULL,
    connection_cap       integer NOT NULL CHECK (connection_cap >= 0),
    size_bytes           bigint NOT NULL CHECK (size_bytes >= 0),
    sized_at             timestamptz,
    next_backup_at       timestamptz,
    access_generation    bigint NOT NULL,
    allowlist_generation bigint NOT NULL,
    allowlist_applied    bigint NOT NULL,
    CONSTRAINT databases_name_unique UNIQUE (server_id, name)
);
CREATE INDEX databases_of_account ON databases (account_id, created_at, id);
CREATE INDEX databases_backup_due ON databases (next_backup_at) WHERE next_backup_at IS NOT NULL;
CREATE INDEX databases_allowlist_due ON databases (id) WHERE allowlist_applied < allowlist_generation;

CREATE TABLE key_databases (
    key_id      text COLLATE "C" REFERENCES api_keys ON UPDATE CASCADE ON DELETE CASCADE,
    database_id uuid REFERENCES databases ON DELETE CASCADE,
    PRIMARY KEY (key_id, database_id)
);
CREATE INDEX key_databases_of_database ON key_databases (database_id);

CREATE TABLE memberships (
    id          uuid PRIMARY KEY,
    database_id uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    user_id     uuid NOT NULL REFERENCES users,
    role        text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
    CONSTRAINT memberships_user_unique UNIQUE (database_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);

CREATE TABLE database_logins (
    database_id uuid REFERENCES databases ON DELETE CASCADE,
    login       text CHECK (login IN ('owner', 'runtime', 'readonly')),
    username    text NOT NULL,
    generation  bigint NOT NULL CHECK (generation > 0),
    verifier    text NOT NULL,
    sealed      bytea NOT NULL,
    PRIMARY KEY (database_id, login)
);

CREATE TABLE allowlist_entries (
    id          uuid PRIMARY KEY,
    database_id uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    cidr        text NOT NULL,
    description text NOT NULL,
    created_at  timestamptz NOT NULL,
    CONSTRAINT allowlist_entries_cidr_unique UNIQUE (database_id, cidr)
);

-- Operations, audit entries and events outlive their database, so they do not refer to it.
CREATE TABLE operations (
    id               uuid PRIMARY KEY,
    account_id       uuid NOT NULL REFERENCES accounts,
    database_id      uuid NOT NULL,
    kind             text NOT NULL CHECK (kind IN
                     ('backup', 'restore', 'clone', 'delete', 'recover', 'extension', 'create', 'lifecycle')),
    status           text NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    stage            text NOT NULL,
    progress         integer NOT NULL CHECK (progress BETWEEN 0 AND 100),
    input            json NOT NULL,
    result           json NOT NULL,
    error_code       text NOT NULL,
    error_text       text NOT NULL,
    actor            text NOT NULL,
    request_id       text NOT NULL,
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz,
    cancel_requested boolean NOT NULL,
    lease_owner      text NOT NULL,
    lease_epoch      bigint NOT NULL,
    lease_until      timestamptz,
    attempts         integer NOT NULL,
    not_before       timestamptz NOT NULL,
    CONSTRAINT operations_end CHECK ((finished_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'canceled')))
);
CREATE UNIQUE INDEX operations_one_open ON operations (database_id) WHERE status IN ('queued', 'running');
CREATE INDEX operations_of_database ON operations (database_id, created_at, id);
-- What has waited longest: an operation waits since it may be claimed and nobody holds it.
CREATE INDEX operations_waiting ON operations (greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('queued', 'running');

CREATE TABLE backups (
    database_id     uuid NOT NULL REFERENCES databases,
    filename        text COLLATE "C" NOT NULL,
    operation_id    uuid NOT NULL,
    trigger         text NOT NULL CHECK (trigger IN ('manual', 'scheduled', 'deletion')),
    format          text NOT NULL CHECK (format IN ('sql.gz')),
    size_bytes      bigint NOT NULL CHECK (size_bytes >= 0),
    checksum_sha256 text NOT NULL,
    created_at      timestamptz NOT NULL,
    verified_at     timestamptz,
    expires_at      timestamptz,
    role_manifest   boolean NOT NULL,
    deleting_at     timestamptz,
    CONSTRAINT backups_filename_unique PRIMARY KEY (database_id, filename),
    CONSTRAINT backups_operation_unique UNIQUE (operation_id)
);
CREATE INDEX backups_of_database ON backups (database_id, created_at, filename);
CREATE INDEX backups_expiring ON backups (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX backups_deleting ON backups (deleting_at) WHERE deleting_at IS NOT NULL;

CREATE TABLE idempotency_keys (
    account_id  uuid REFERENCES accounts,
    route       text,
    key         text,
    fingerprint text NOT NULL,
    resource_id text NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (account_id, route, key)
);
CREATE INDEX idempotency_keys_of_resource ON idempotency_keys (resource_id);

CREATE TABLE audit_entries (
    id          uuid PRIMARY KEY,
    at          timestamptz NOT NULL,
    account_id  uuid,
    database_id uuid,
    actor       text NOT NULL,
    action      text NOT NULL,
    details     json NOT NULL
);
CREATE INDEX audit_entries_of_database ON audit_entries (database_id, at, id);

CREATE TABLE outbox_events (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL,
    database_id  uuid NOT NULL,
    operation_id uuid NOT NULL,
    name         text NOT NULL,
    payload      json NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT outbox_events_operation_unique UNIQUE (operation_id, name)
);
CREATE INDEX outbox_events_by_age ON outbox_events (created_at, id);

-- A bucket is one instant in microseconds. It has no index on it, so that an update stays within its page. Losing the table
-- in a crash only fills the buckets again.
CREATE UNLOGGED TABLE rate_buckets (
    bucket text COLLATE "C" PRIMARY KEY,
    tat    bigint NOT NULL,
    taken  boolean NOT NULL -- whether the last request was let in; read by the statement that wrote it
) WITH (fillfactor = 50);

CREATE TABLE switches (
    name    text COLLATE "C" PRIMARY KEY,
    enabled boolean NOT NULL
);

CREATE TABLE features (
    name text COLLATE "C" PRIMARY KEY
);

CREATE TABLE enrolments (
    database_id uuid REFERENCES databases ON DELETE CASCADE,
    route       text,
    PRIMARY KEY (database_id, route)
);

CREATE TABLE auto_enrolments (
    account_id uuid PRIMARY KEY REFERENCES accounts
);
