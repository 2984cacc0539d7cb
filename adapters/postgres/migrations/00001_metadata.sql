-- The metadata of the service. Times come from the Clock port, so no column has a time of the server's as its default. The CHECK
-- constraints repeat the states of the core's machines; a test compares the two. The rules for the migrations that follow this
-- one are in docs/develop/releasing.md.

-- +goose Up

-- The oldest program that works with this schema, by the newest migration that it knows. A migration that takes away what an
-- older program needs raises it. A host that is older does not start.
CREATE TABLE oldest_program (
    schema_version bigint PRIMARY KEY
);
INSERT INTO oldest_program VALUES (1);

-- What tells this installation's snapshots from those of others. It stays when the metadata are made anew.
CREATE TABLE installation (
    one boolean PRIMARY KEY CHECK (one),
    id  uuid NOT NULL
);
INSERT INTO installation VALUES (true, gen_random_uuid());

--
-- Users, accounts and keys
--

-- An empty password_hash: no password. Without logged_in_at nobody has ever logged in as the user. An address is stored, here and below, in the one form that it is compared in: printable
-- ASCII in lower case.
CREATE DOMAIN address AS text COLLATE "C" CHECK (VALUE = lower(VALUE) AND VALUE ~ '^[!-~]+$');
CREATE TABLE users (
    id            uuid PRIMARY KEY,
    email         address NOT NULL,
    name          text NOT NULL,
    password_hash text NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL,
    logged_in_at  timestamptz,
    CONSTRAINT users_email_unique UNIQUE (email)
);

-- What is NULL is as the plan has it.
CREATE TABLE accounts (
    id                  uuid PRIMARY KEY,
    owner_id            uuid NOT NULL REFERENCES users,
    plan                text NOT NULL CHECK (plan IN ('free', 'pro', 'business')),
    created_at          timestamptz NOT NULL,
    max_databases       integer CHECK (max_databases >= 0),
    connection_cap      integer CHECK (connection_cap > 0),
    database_bytes      bigint CHECK (database_bytes > 0),
    backup_bytes        bigint CHECK (backup_bytes > 0),
    backup_days         integer CHECK (backup_days > 0),
    pitr_days           integer CHECK (pitr_days >= 0),
    verify_backups      boolean,
    credential_validity bigint CHECK (credential_validity >= 0), -- nanoseconds
    preview_copies      boolean,
    postgres_version    integer CHECK (postgres_version BETWEEN 16 AND 18),
    suspended_at        timestamptz,
    suspended_for       text NOT NULL DEFAULT '',
    CONSTRAINT accounts_owner_unique UNIQUE (owner_id),
    CONSTRAINT accounts_suspension CHECK ((suspended_at IS NULL) = (suspended_for = ''))
);

-- Who may use the operator's console.
CREATE TABLE operators (
    user_id  uuid PRIMARY KEY REFERENCES users,
    added_at timestamptz NOT NULL
);

-- Of the token of a session only its hash is kept.
CREATE TABLE sessions (
    id         uuid PRIMARY KEY,
    user_id    uuid NOT NULL REFERENCES users,
    token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
    status     text NOT NULL CHECK (status IN ('awaits_factor', 'open', 'ended')),
    tries      integer NOT NULL CHECK (tries >= 0),
    created_at timestamptz NOT NULL,
    used_at    timestamptz NOT NULL,
    proved_at  timestamptz NOT NULL,
    proved_by  text NOT NULL CHECK (proved_by IN ('password', 'sign_on', 'code', 'passkey')),
    ended_at   timestamptz,
    client     text NOT NULL,
    agent      text NOT NULL,
    issuer     text NOT NULL, -- the identity that the person gets with the factor; empty: none
    subject    text NOT NULL,
    CONSTRAINT sessions_end CHECK ((ended_at IS NOT NULL) = (status = 'ended')),
    CONSTRAINT sessions_token_unique UNIQUE (token_hash)
);
CREATE INDEX sessions_of_user ON sessions (user_id) WHERE status <> 'ended';
CREATE INDEX sessions_created ON sessions (created_at);
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE passkeys (
    id         uuid PRIMARY KEY,
    user_id    uuid NOT NULL REFERENCES users,
    handle     bytea NOT NULL CHECK (length(handle) = 32),
    credential bytea NOT NULL CHECK (length(credential) BETWEEN 1 AND 1023),
    record     bytea NOT NULL,
    name       text NOT NULL,
    created_at timestamptz NOT NULL,
    used_at    timestamptz,
    CONSTRAINT passkeys_credential_unique UNIQUE (credential)
);
CREATE INDEX passkeys_of_user ON passkeys (user_id, created_at, id);

-- Of a passkey's challenge that was answered only a digest is kept, until its time is over.
CREATE TABLE spent_challenges (
    mark  bytea PRIMARY KEY CHECK (length(mark) = 32),
    until timestamptz NOT NULL
);
CREATE INDEX spent_challenges_until ON spent_challenges (until);

-- Who people are to OpenID Connect issuers. Letter case counts.
CREATE TABLE identities (
    issuer     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    user_id    uuid NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    CONSTRAINT identities_person_unique UNIQUE (user_id, issuer)
);

-- Links to choose another password or, where the operator has made it, to log in. Of their tokens only hashes are kept.
CREATE TABLE resets (
    user_id     uuid PRIMARY KEY REFERENCES users,
    token_hash  bytea NOT NULL CHECK (length(token_hash) = 32),
    expires_at  timestamptz NOT NULL,
    by_operator boolean NOT NULL,
    CONSTRAINT resets_token_unique UNIQUE (token_hash)
);

-- The second factor of a person, whose ID it has.
CREATE TABLE factors (
    id            uuid PRIMARY KEY REFERENCES users,
    sealed_secret bytea NOT NULL,
    last_step     bigint NOT NULL CHECK (last_step >= 0),
    created_at    timestamptz NOT NULL,
    confirmed_at  timestamptz
);

CREATE TABLE recovery_codes (
    user_id uuid NOT NULL REFERENCES users,
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (user_id, hash)
);

CREATE TABLE ci_namespaces (
    id         uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts,
    name       text NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    CONSTRAINT ci_namespaces_name_unique UNIQUE (account_id, name)
);

-- CI keys can end by time: those that an OIDC token of a CI system was exchanged for, by a trust of the namespace. A trust that is
-- removed leaves its ID with the keys. CI keys reach no database as such, whatever their scope says; so it says that they reach the
-- selected ones, of which they have none.
--
-- A key of an account may be good in some networks only: CIDR blocks with a blank between them.
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
    revoked_at   timestamptz,
    expires_at   timestamptz,
    trust_id     uuid CHECK (trust_id IS NULL OR kind = 'ci' AND expires_at IS NOT NULL),
    issuer       text NOT NULL DEFAULT '',
    subject      text NOT NULL DEFAULT '',
    networks     text NOT NULL DEFAULT '' CHECK (kind = 'account' OR networks = '')
);
CREATE INDEX api_keys_of_account ON api_keys (account_id, created_at, id);
CREATE INDEX api_keys_of_namespace ON api_keys (namespace_id, created_at, id) WHERE namespace_id IS NOT NULL;
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE trust_id IS NOT NULL;

CREATE TABLE ci_trusts (
    id           uuid PRIMARY KEY,
    namespace_id uuid NOT NULL REFERENCES ci_namespaces,
    issuer       text NOT NULL,
    audience     text NOT NULL,
    subject      text NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT ci_trusts_unique UNIQUE (namespace_id, issuer, audience, subject)
);

-- Of an exchanged token only a digest is kept, until its time is over.
CREATE TABLE ci_spent_tokens (
    mark  bytea PRIMARY KEY CHECK (length(mark) = 32),
    until timestamptz NOT NULL
);
CREATE INDEX ci_spent_tokens_until ON ci_spent_tokens (until);

--
-- Database servers
--

-- "installation" is what tells a server from every other one, by whichever address its agent is reached; empty until its agent has
-- said it. Placement passes a server over until avoided_until. answered_at is when its agent last answered, to a minute, and
-- away_since since when it does not. storage is where it said then that it keeps backups, and public_ca the certificates by which
-- its pooler is known. sealed_archive_key is the passphrase of its archive, which never changes.
CREATE TABLE servers (
    id                 uuid PRIMARY KEY,
    name               text COLLATE "C" NOT NULL,
    installation       text NOT NULL DEFAULT '',
    agent_url          text NOT NULL,
    sealed_secret      bytea NOT NULL,
    sealed_archive_key bytea NOT NULL,
    ca                 text NOT NULL,
    public_host        text NOT NULL,
    public_port        integer NOT NULL CHECK (public_port BETWEEN 1 AND 65535),
    capacity           integer NOT NULL CHECK (capacity >= 0),
    connections        integer NOT NULL DEFAULT 0 CHECK (connections >= 0),
    enabled            boolean NOT NULL,
    created_at         timestamptz NOT NULL,
    avoided_until      timestamptz,
    answered_at        timestamptz,
    away_since         timestamptz,
    storage            text NOT NULL DEFAULT '',
    public_ca          text NOT NULL DEFAULT '',
    postgres_version   integer NOT NULL DEFAULT 0 CHECK (postgres_version = 0 OR postgres_version BETWEEN 16 AND 18),
    CONSTRAINT servers_name_unique UNIQUE (name)
);
CREATE UNIQUE INDEX servers_installation_unique ON servers (installation) WHERE installation <> '';

-- What the trial of an extension on a database server has shown: the last one of each. It proves nothing about another version of
-- the extension or of PostgreSQL.
CREATE TABLE extension_qualifications (
    server_id      uuid REFERENCES servers,
    extension      text,
    version        text NOT NULL,
    server_version text NOT NULL,
    qualified      boolean NOT NULL,
    message        text NOT NULL,
    at             timestamptz NOT NULL,
    PRIMARY KEY (server_id, extension)
);

--
-- Databases
--

-- The record of a deleted database stays until it is purged, with its name and its place on the server.
--
-- What the service sets in a database for its logins is sent together, under one settings_generation: the wanted profile of query
-- timeouts, beside the one that the server is known to have, and what the quota of bytes does. storage_ceiling is the size above
-- which a database that an operator has opened is closed again; 0: the rule's own.
--
-- schedule_since is since when the schedule holds; NULL: since the creation. The overlay of a database with a single login is what
-- its additional roles stand on.
CREATE TABLE databases (
    id                   uuid PRIMARY KEY,
    account_id           uuid NOT NULL REFERENCES accounts,
    server_id            uuid NOT NULL REFERENCES servers,
    name                 text NOT NULL,
    display_name         text NOT NULL,
    -- What lists look for a text in. Names have no control characters. A column is read with all before it.
    searched             text COLLATE "C" NOT NULL GENERATED ALWAYS AS (lower(display_name COLLATE "C") || E'\n' || name) STORED,
    role_model           text NOT NULL CHECK (role_model IN ('managed', 'single_login')),
    environment          text NOT NULL CHECK (environment IN ('', 'production', 'staging', 'development', 'other')),
    status               text NOT NULL CHECK (status IN
                         ('creating', 'active', 'stopped', 'deleting', 'error', 'deleted', 'purging')),
    created_at           timestamptz NOT NULL,
    connection_cap       integer NOT NULL CHECK (connection_cap >= 0),
    postgres_version     integer NOT NULL DEFAULT 16 CHECK (postgres_version BETWEEN 16 AND 18),
    -- The version that it came from by an upgrade that is not confirmed yet; 0: none.
    way_back             integer NOT NULL DEFAULT 0 CHECK (way_back = 0 OR way_back BETWEEN 16 AND postgres_version - 1),
    size_bytes           bigint NOT NULL CHECK (size_bytes >= 0),
    sized_at             timestamptz,
    schedule             text NOT NULL CHECK (schedule IN ('none', 'daily')),
    schedule_since       timestamptz,
    next_backup_at       timestamptz,
    next_reading_at      timestamptz NOT NULL DEFAULT 'epoch',
    access_generation    bigint NOT NULL,
    allowlist_generation bigint NOT NULL,
    allowlist_applied    bigint NOT NULL,
    role_generation      bigint NOT NULL DEFAULT 0,
    role_ordinal         integer NOT NULL DEFAULT 0,
    roles_barred         boolean NOT NULL DEFAULT false,
    settings_generation  bigint NOT NULL DEFAULT 0 CHECK (settings_generation >= 0),
    settings_applied     bigint NOT NULL DEFAULT 0 CHECK (settings_applied >= 0),
    timeout_profile      text NOT NULL DEFAULT 'not_configured' CHECK (timeout_profile IN
                         ('not_configured', 'standard', 'balanced', 'short')),
    timeout_effective    text NOT NULL DEFAULT 'not_configured' CHECK (timeout_effective IN
                         ('not_configured', 'standard', 'balanced', 'short')),
    timeout_operation    uuid,
    storage_status       text NOT NULL DEFAULT 'ok' CHECK (storage_status IN ('ok', 'full', 'closed')),
    storage_ceiling      bigint NOT NULL DEFAULT 0 CHECK (storage_ceiling >= 0),
    overlay_id           uuid,
    overlay_status       text NOT NULL DEFAULT 'none' CHECK (overlay_status IN ('none', 'reserved', 'active')),
    overlay_generation   bigint NOT NULL DEFAULT 0 CHECK (overlay_generation >= 0),
    CONSTRAINT databases_name_unique UNIQUE (server_id, name),
    CONSTRAINT databases_overlay CHECK ((overlay_status = 'none') = (overlay_id IS NULL))
);
CREATE INDEX databases_of_account ON databases (account_id, created_at, id);
-- The other orders of lists.
CREATE INDEX databases_by_name ON databases (account_id, name COLLATE "C", id);
CREATE INDEX databases_by_size ON databases (account_id, size_bytes, id);
-- Rounds that look for what is due pass deleted databases by without looking at each.
CREATE INDEX databases_backup_due ON databases (next_backup_at)
    WHERE next_backup_at IS NOT NULL AND status IN ('active', 'stopped');
CREATE INDEX databases_reading_due ON databases (next_reading_at) WHERE status NOT IN ('creating', 'purging');
CREATE INDEX databases_allowlist_due ON databases (id) WHERE allowlist_applied < allowlist_generation;
CREATE INDEX databases_ways_back ON databases (way_back, id) WHERE way_back > 0;
-- What few databases are, and figures count.
CREATE INDEX databases_in_error ON databases (server_id) WHERE status = 'error';
CREATE INDEX databases_over_quota ON databases (storage_status) WHERE storage_status <> 'ok';
CREATE INDEX databases_settings_due ON databases (id) WHERE settings_applied < settings_generation;

-- What the backups of a database are encrypted with, encrypted itself.
CREATE TABLE backup_keys (
    database_id uuid PRIMARY KEY REFERENCES databases ON DELETE CASCADE,
    sealed      bytea NOT NULL
);

CREATE TABLE key_databases (
    key_id      text COLLATE "C" REFERENCES api_keys ON UPDATE CASCADE ON DELETE CASCADE,
    database_id uuid REFERENCES databases ON DELETE CASCADE,
    PRIMARY KEY (key_id, database_id)
);
CREATE INDEX key_databases_of_database ON key_databases (database_id);

CREATE TABLE allowlist_entries (
    id          uuid PRIMARY KEY,
    database_id uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    cidr        text NOT NULL,
    description text NOT NULL,
    created_at  timestamptz NOT NULL,
    CONSTRAINT allowlist_entries_cidr_unique UNIQUE (database_id, cidr)
);

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

--
-- Logins and roles
--

CREATE TABLE database_logins (
    database_id uuid REFERENCES databases ON DELETE CASCADE,
    login       text CHECK (login IN ('owner', 'runtime', 'readonly')),
    username    text NOT NULL,
    generation  bigint NOT NULL CHECK (generation > 0),
    verifier    text NOT NULL,
    sealed      bytea NOT NULL,
    PRIMARY KEY (database_id, login)
);

-- Additional roles. A removed one stays: neither its ordinal nor its key is used again.
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

-- Changes of logins and roles: exactly one of role_id and login is set. "refusal" says why a server has refused one for good.
CREATE TABLE role_changes (
    id                    uuid PRIMARY KEY,
    database_id           uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    role_id               uuid REFERENCES roles ON DELETE CASCADE,
    login                 text NOT NULL CHECK (login IN ('', 'owner', 'runtime', 'readonly')),
    username              text NOT NULL,
    kind                  text NOT NULL CHECK (kind IN ('rotate', 'revoke', 'expire', 'remove')),
    status                text NOT NULL CHECK (status IN ('pending', 'completed', 'refused')),
    refusal               text NOT NULL DEFAULT '',
    idempotency_key       text NOT NULL,
    generation            bigint NOT NULL CHECK (generation > 0),
    credential_generation bigint NOT NULL CHECK (credential_generation > 0),
    verifier              text NOT NULL,
    sealed                bytea,
    expires_at            timestamptz,
    revealed              boolean NOT NULL,
    actor                 text NOT NULL,
    user_id               uuid,
    request_id            text NOT NULL,
    created_at            timestamptz NOT NULL,
    ended_at              timestamptz,
    CONSTRAINT role_changes_key_unique UNIQUE (database_id, idempotency_key),
    CONSTRAINT role_changes_target CHECK ((role_id IS NULL) = (login <> '')),
    CONSTRAINT role_changes_end CHECK ((ended_at IS NULL) = (status = 'pending')),
    CONSTRAINT role_changes_secret CHECK ((sealed IS NOT NULL) = (status = 'pending' AND kind = 'rotate'))
);
CREATE UNIQUE INDEX role_changes_one_pending ON role_changes (database_id) WHERE status = 'pending';
CREATE INDEX role_changes_of_role ON role_changes (role_id) WHERE role_id IS NOT NULL;
CREATE INDEX role_changes_ended ON role_changes (ended_at, id) WHERE ended_at IS NOT NULL;

--
-- Members, invitations and their mails
--

CREATE TABLE memberships (
    id          uuid PRIMARY KEY,
    database_id uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    user_id     uuid NOT NULL REFERENCES users,
    role        text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
    created_at  timestamptz NOT NULL,
    CONSTRAINT memberships_user_unique UNIQUE (database_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);
CREATE INDEX memberships_of_database ON memberships (database_id, created_at, id);

CREATE TABLE invitations (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES accounts,
    database_id uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    email       address NOT NULL,
    role        text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
    token_hash  bytea NOT NULL CHECK (length(token_hash) = 32),
    status      text NOT NULL CHECK (status IN ('open', 'accepted', 'revoked', 'expired')),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    CONSTRAINT invitations_end CHECK ((ended_at IS NOT NULL) = (status <> 'open')),
    CONSTRAINT invitations_token_unique UNIQUE (token_hash)
);
CREATE UNIQUE INDEX invitations_address_unique ON invitations (database_id, email) WHERE status IN ('open', 'expired');
CREATE INDEX invitations_of_database ON invitations (database_id, created_at, id);
CREATE INDEX invitations_overdue ON invitations (expires_at) WHERE status = 'open';
CREATE INDEX invitations_ended ON invitations (ended_at) WHERE ended_at IS NOT NULL;

-- Mails on their way. The token is there until the mail was sent or given up. An invitation's row may go before its mail's; a
-- database takes both with it.
CREATE TABLE mails (
    id               uuid PRIMARY KEY,
    kind             text NOT NULL CHECK (kind IN ('invitation', 'welcome', 'reset', 'notice', 'warning')),
    invitation_id    uuid CHECK ((invitation_id IS NOT NULL) = (kind = 'invitation')),
    account_id       uuid NOT NULL REFERENCES accounts,
    database_id      uuid REFERENCES databases ON DELETE CASCADE CHECK ((database_id IS NOT NULL) = (kind = 'invitation')),
    recipient        address NOT NULL,
    inviter          text NOT NULL,
    database_display text NOT NULL,
    role             text NOT NULL CHECK (role IN ('', 'admin', 'developer', 'viewer')),
    note             text NOT NULL,
    expires_at       timestamptz NOT NULL,
    sealed_token     bytea,
    status           text NOT NULL CHECK (status IN ('pending', 'sending', 'sent', 'failed', 'withdrawn')),
    attempts         integer NOT NULL CHECK (attempts >= 0),
    created_at       timestamptz NOT NULL,
    finished_at      timestamptz,
    lease_owner      text NOT NULL,
    lease_epoch      bigint NOT NULL,
    lease_until      timestamptz,
    not_before       timestamptz NOT NULL,
    CONSTRAINT mails_role_of_invitation CHECK ((role <> '') = (kind = 'invitation')),
    CONSTRAINT mails_token_until_final CHECK ((sealed_token IS NOT NULL) = (status IN ('pending', 'sending'))),
    CONSTRAINT mails_finished_when_final CHECK ((finished_at IS NULL) = (status IN ('pending', 'sending')))
);
CREATE INDEX mails_of_invitation ON mails (invitation_id);
CREATE INDEX mails_of_database ON mails (database_id);
CREATE INDEX mails_recent ON mails (account_id, created_at);
-- The bounds of mails count an address without its tag, as mail.Mailbox has it.
CREATE INDEX mails_of_mailbox ON mails (regexp_replace(recipient, '^([^@+]+)[+][^@]*', '\1'), created_at);
-- What has been due longest of each account: a mail is due since it may be claimed and nobody holds it.
CREATE INDEX mails_due ON mails (account_id, greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('pending', 'sending');
CREATE INDEX mails_held ON mails (account_id, lease_until) WHERE status = 'sending';
CREATE INDEX mails_ended ON mails (finished_at) WHERE finished_at IS NOT NULL;

-- The turn of an account is higher the later it was last served. A claim changes its account's row, so that a second claim for
-- the same account never counts without the first.
CREATE SEQUENCE mail_turns;
CREATE TABLE mail_lanes (
    account_id uuid PRIMARY KEY REFERENCES accounts,
    turn       bigint NOT NULL
) WITH (fillfactor = 50);

--
-- Operations
--

-- Operations, audit entries and events outlive their database, so they do not refer to it. The kinds are those that the hosts
-- register. bytes_done and bytes_total are of the part of the operation that is under way; a total of 0 where that is not known.
-- other_id is the second server of a move: where the database comes to, and then the one that it has left. It takes room there, too.
-- Of a rebuild it is the server that is gone, which is not removed before: the record may go back to it.
-- user_id is the person beside the name of the key, which changes when the key is replaced; NULL where there is none. It outlives
-- the person, too.
CREATE TABLE operations (
    id               uuid PRIMARY KEY,
    account_id       uuid NOT NULL REFERENCES accounts,
    database_id      uuid NOT NULL,
    server_id        uuid NOT NULL,
    other_id         uuid,
    kind             text NOT NULL,
    logins           boolean NOT NULL DEFAULT false,
    status           text NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    stage            text NOT NULL,
    progress         integer NOT NULL CHECK (progress BETWEEN 0 AND 100),
    bytes_done       bigint NOT NULL DEFAULT 0,
    bytes_total      bigint NOT NULL DEFAULT 0,
    input            json NOT NULL,
    result           json NOT NULL,
    sealed_input     bytea, -- until it has ended
    sealed_result    bytea,
    error_code       text NOT NULL,
    error_text       text NOT NULL,
    actor            text NOT NULL,
    user_id          uuid,
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
CREATE UNIQUE INDEX operations_one_open ON operations (database_id, logins) WHERE status IN ('queued', 'running');
CREATE INDEX operations_moving ON operations (other_id, database_id)
    WHERE other_id IS NOT NULL AND status IN ('queued', 'running');
CREATE INDEX operations_of_database ON operations (database_id, created_at, id);
-- What has waited longest: an operation waits since it may be claimed and nobody holds it.
CREATE INDEX operations_waiting ON operations (greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('queued', 'running');
-- What has been due longest in each lane.
CREATE INDEX operations_due ON operations (account_id, server_id, kind, greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('queued', 'running');
CREATE INDEX operations_ended ON operations (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX operations_sealed_input ON operations (id) WHERE sealed_input IS NOT NULL;
CREATE INDEX operations_sealed_result ON operations (id) WHERE sealed_result IS NOT NULL;

-- The accounts that have lanes, in the order in which they are served: turn is higher the later one was last served, and since is
-- when the first operation was due of one that was not. Whoever adds a lane holds its account until the end of the transaction, so
-- that whoever holds it for its removal sees every lane.
CREATE SEQUENCE operation_turns;
CREATE TABLE operation_accounts (
    account_id uuid PRIMARY KEY,
    turn       bigint NOT NULL,
    since      timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX operation_accounts_in_turn ON operation_accounts (turn, since);

-- A lane is the open operations of one account, on one server, of one kind. None of them is due before due_at; turn is higher
-- the later the lane was last served. Whoever makes an operation due earlier holds the lane until the end of the transaction, so
-- that a claim that finds the lane exhausted, and holds it too, sees every operation.
CREATE TABLE operation_lanes (
    account_id uuid REFERENCES operation_accounts,
    server_id  uuid,
    kind       text,
    due_at     timestamptz NOT NULL,
    turn       bigint NOT NULL,
    PRIMARY KEY (account_id, server_id, kind)
) WITH (fillfactor = 50);

-- What an operation uses beside its own database. Only the rows of open operations count.
CREATE TABLE operation_uses (
    operation_id uuid REFERENCES operations,
    database_id  uuid,
    backup       text,
    exclusive    boolean NOT NULL,
    PRIMARY KEY (operation_id, database_id, backup)
);
CREATE INDEX operation_uses_of_database ON operation_uses (database_id);

-- +goose StatementBegin
CREATE FUNCTION operation_due() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    due timestamptz := greatest(NEW.not_before, NEW.lease_until);
BEGIN
    PERFORM FROM operation_accounts WHERE account_id = NEW.account_id AND (turn > 0 OR since <= due) FOR KEY SHARE;
    IF NOT FOUND THEN
        INSERT INTO operation_accounts AS a VALUES (NEW.account_id, 0, due)
            ON CONFLICT (account_id) DO UPDATE SET since = least(a.since, excluded.since);
    END IF;
    INSERT INTO operation_lanes AS l VALUES (NEW.account_id, NEW.server_id, NEW.kind, due, 0)
        ON CONFLICT (account_id, server_id, kind) DO UPDATE SET due_at = least(l.due_at, excluded.due_at);
    RETURN NULL;
END $$;

CREATE FUNCTION database_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE operations o SET server_id = NEW.server_id, other_id = CASE WHEN o.other_id IS NOT NULL THEN OLD.server_id END
        WHERE o.database_id = NEW.id AND o.status IN ('queued', 'running');
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER operation_added AFTER INSERT ON operations FOR EACH ROW
    WHEN (NEW.status IN ('queued', 'running')) EXECUTE FUNCTION operation_due();
CREATE TRIGGER operation_due AFTER UPDATE ON operations FOR EACH ROW
    WHEN (NEW.status IN ('queued', 'running') AND
        (greatest(NEW.not_before, NEW.lease_until) < greatest(OLD.not_before, OLD.lease_until)
            OR NEW.server_id <> OLD.server_id))
    EXECUTE FUNCTION operation_due();
CREATE TRIGGER database_moved AFTER UPDATE OF server_id ON databases FOR EACH ROW
    WHEN (NEW.server_id <> OLD.server_id) EXECUTE FUNCTION database_moved();

-- A server that sends on who still comes for a database that it has left. sent tells what it was last told from anything else,
-- address is where it comes from to the database's server, and welcomed is the server that admits clients from there. Every round
-- looks at it from next_at on.
CREATE TABLE forwards (
    database_id        uuid REFERENCES databases ON DELETE CASCADE,
    server_id          uuid REFERENCES servers,
    created_at         timestamptz NOT NULL,
    until              timestamptz NOT NULL,
    ended_at           timestamptz,
    generation         bigint NOT NULL CHECK (generation >= 0),
    sent               text NOT NULL,
    address            text NOT NULL,
    welcomed           uuid,
    welcome_generation bigint NOT NULL CHECK (welcome_generation >= 0),
    next_at            timestamptz NOT NULL,
    failures           integer NOT NULL CHECK (failures >= 0),
    trouble            text NOT NULL,
    PRIMARY KEY (database_id, server_id)
);
CREATE INDEX forwards_due ON forwards (next_at, database_id, server_id);
CREATE INDEX forwards_of_server ON forwards (server_id);

-- The last rehearsal of a database for a major version of PostgreSQL, and what breaks there: it permits the move to a server of that
-- version for some days, while the schema stays the same.
CREATE TABLE rehearsals (
    database_id      uuid REFERENCES databases ON DELETE CASCADE,
    postgres_version integer NOT NULL CHECK (postgres_version > 0),
    server_id        uuid NOT NULL REFERENCES servers ON DELETE CASCADE,
    operation_id     uuid NOT NULL,
    ended_at         timestamptz NOT NULL,
    schema_sha256    text NOT NULL,
    breaks           json NOT NULL,
    PRIMARY KEY (database_id, postgres_version)
);
CREATE INDEX rehearsals_of_server ON rehearsals (server_id);

-- A server whose databases are moved to others, to_id or any, as it was last ordered; and what became of those that it has tried.
-- tries counts the tries of each. These go with their server.
CREATE TABLE drains (
    server_id  uuid PRIMARY KEY REFERENCES servers ON DELETE CASCADE,
    to_id      uuid,
    at_once    integer NOT NULL CHECK (at_once > 0),
    closed     boolean NOT NULL,
    forward_s  bigint NOT NULL CHECK (forward_s >= 0),
    remove     boolean NOT NULL,
    ordered_by text NOT NULL,
    reason     text NOT NULL,
    created_at timestamptz NOT NULL,
    ended_at   timestamptz,
    state      text NOT NULL CHECK (state IN ('draining', 'drained', 'stuck', 'stopped')),
    why        text NOT NULL,
    CONSTRAINT drains_end CHECK ((ended_at IS NULL) = (state = 'draining'))
);
CREATE TABLE drain_items (
    server_id    uuid REFERENCES drains ON DELETE CASCADE,
    database_id  uuid,
    operation_id uuid,
    tries        integer NOT NULL CHECK (tries >= 0),
    next_at      timestamptz NOT NULL,
    why          text NOT NULL,
    PRIMARY KEY (server_id, database_id)
);

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
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at, resource_id);

--
-- Backups, uploads and certificates
--

-- A backup's record binds its manifest, which says what a restore of the file must be: manifest_sha256 is its SHA-256 in lower-case
-- hex. "held" says of a backup with a retention that its database is deleted, so that it is kept until the purge: the tombstone is
-- stored and withdrawn with it. kept_by is a server that the database has left and that alone has the file, which could not be
-- carried over.
CREATE TABLE backups (
    database_id     uuid NOT NULL REFERENCES databases,
    filename        text COLLATE "C" NOT NULL,
    operation_id    uuid NOT NULL,
    trigger         text NOT NULL CHECK (trigger IN ('manual', 'scheduled', 'deletion')),
    format          text NOT NULL CHECK (format IN ('sql.gz')),
    size_bytes      bigint NOT NULL CHECK (size_bytes >= 0),
    checksum_sha256 text NOT NULL,
    manifest_sha256 text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    verified_at     timestamptz,
    expires_at      timestamptz,
    held            boolean NOT NULL DEFAULT false,
    role_manifest   boolean NOT NULL,
    last_read_at    timestamptz,
    damaged_at      timestamptz CHECK (damaged_at IS NULL OR verified_at IS NULL),
    deleting_at     timestamptz,
    kept_by         uuid REFERENCES servers ON DELETE SET NULL,
    CONSTRAINT backups_filename_unique PRIMARY KEY (database_id, filename),
    CONSTRAINT backups_operation_unique UNIQUE (operation_id)
);
CREATE INDEX backups_of_database ON backups (database_id, created_at, filename);
-- Accounts may have many backups that are not verified; lists say when the newest one that is was made.
CREATE INDEX backups_verified ON backups (database_id, created_at) WHERE verified_at IS NOT NULL AND deleting_at IS NULL;
-- Rounds that look for what is due pass those of deleted databases by without looking at each.
CREATE INDEX backups_expiring ON backups (expires_at) WHERE expires_at IS NOT NULL AND NOT held;
CREATE INDEX backups_deleting ON backups (deleting_at) WHERE deleting_at IS NOT NULL;
CREATE INDEX backups_kept ON backups (kept_by) WHERE kept_by IS NOT NULL;

-- Dumps that customers have announced to restore from, until their files are removed from the server. operation_id is the restore
-- that one is for, once it is complete.
CREATE TABLE uploads (
    id           uuid PRIMARY KEY,
    database_id  uuid NOT NULL REFERENCES databases,
    operation_id uuid REFERENCES operations,
    size_bytes   bigint NOT NULL CHECK (size_bytes > 0),
    sha256       text NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX uploads_of_database ON uploads (database_id);
CREATE INDEX uploads_of_operation ON uploads (operation_id) WHERE operation_id IS NOT NULL;

-- Keys that sign restore certificates. A retired key keeps its public part for ever, and has no private one.
CREATE TABLE certificate_keys (
    id          uuid PRIMARY KEY,
    public_key  bytea NOT NULL CHECK (length(public_key) = 32),
    sealed_seed bytea,
    created_at  timestamptz NOT NULL,
    retired_at  timestamptz,
    CONSTRAINT certificate_keys_retired CHECK ((retired_at IS NULL) = (sealed_seed IS NOT NULL))
);
CREATE UNIQUE INDEX certificate_keys_one_signs ON certificate_keys ((retired_at IS NULL)) WHERE retired_at IS NULL;

--
-- Deleted databases and previews
--

-- What a deleted database was, and until when it can be recovered. Its backup is named twice, here and in "backups", and only where
-- both agree is it the deletion's. "members", "keys" and "allowlist" count the access snapshot as it was made. A recovered database
-- keeps its tombstone, which then says by which operation it was recovered, until it is deleted again.
CREATE TABLE tombstones (
    database_id     uuid PRIMARY KEY REFERENCES databases ON DELETE CASCADE,
    operation_id    uuid NOT NULL,
    recovery_id     uuid,
    status_before   text NOT NULL CHECK (status_before IN ('active', 'stopped', 'error')),
    deleted_at      timestamptz NOT NULL,
    purge_after     timestamptz NOT NULL,
    filename        text COLLATE "C" NOT NULL,
    checksum_sha256 text NOT NULL,
    members         integer NOT NULL,
    keys            integer NOT NULL,
    allowlist       integer NOT NULL,
    CONSTRAINT tombstones_binding CHECK ((filename = '') = (checksum_sha256 = ''))
);
CREATE INDEX tombstones_due ON tombstones (purge_after, database_id);

-- Who was a member, whether or not there is such a user any more.
CREATE TABLE tombstone_members (
    database_id uuid REFERENCES tombstones ON DELETE CASCADE,
    user_id     uuid,
    PRIMARY KEY (database_id, user_id)
);

-- Which keys were bound to the database. A key that is replaced gets another ID, and stays bound.
CREATE TABLE tombstone_keys (
    database_id uuid REFERENCES tombstones ON DELETE CASCADE,
    key_id      text COLLATE "C" REFERENCES api_keys ON UPDATE CASCADE,
    PRIMARY KEY (database_id, key_id)
);
CREATE INDEX tombstone_keys_of_key ON tombstone_keys (key_id);

-- What databases are as previews: each belongs to a CI namespace and to a ref of its own, and has a lease. ttl_hours and
-- scheduled_backup are the choices of the request that made it; what has been changed since is not in them. end_at is when the
-- service tries to delete a preview whose lease has ended, ending_since when it began to.
CREATE TABLE previews (
    database_id      uuid PRIMARY KEY REFERENCES databases ON DELETE CASCADE,
    namespace_id     uuid NOT NULL REFERENCES ci_namespaces,
    ref              text COLLATE "C" NOT NULL,
    use              integer NOT NULL CHECK (use > 0),
    ttl_hours        integer NOT NULL CHECK (ttl_hours BETWEEN 1 AND 72),
    scheduled_backup text NOT NULL CHECK (scheduled_backup IN ('none', 'daily')),
    source_id        uuid, -- it may be purged long since
    source_at        timestamptz,
    lease_status     text NOT NULL CHECK (lease_status IN ('active', 'expired', 'deleting', 'deleted', 'recovering')),
    lease_generation bigint NOT NULL CHECK (lease_generation > 0),
    expires_at       timestamptz NOT NULL,
    end_at           timestamptz CHECK ((end_at IS NOT NULL) = (lease_status = 'expired')),
    failures         integer NOT NULL CHECK (failures >= 0),
    ending_since     timestamptz CHECK (ending_since IS NULL OR lease_status = 'deleting'),
    CONSTRAINT previews_use_unique UNIQUE (namespace_id, ref, use),
    CONSTRAINT previews_source CHECK ((source_id IS NULL) = (source_at IS NULL))
);
CREATE UNIQUE INDEX previews_one_live ON previews (namespace_id, ref) WHERE lease_status <> 'deleted';
CREATE INDEX previews_active ON previews (expires_at) WHERE lease_status = 'active';
CREATE INDEX previews_expired ON previews (end_at) WHERE lease_status = 'expired';
CREATE INDEX previews_ending ON previews (database_id) WHERE ending_since IS NOT NULL;

--
-- The log, and events on their way to webhooks
--

-- The log outlives people and databases, so it does not refer to them. user_id is as that of operations.
CREATE TABLE audit_entries (
    id          uuid PRIMARY KEY,
    at          timestamptz NOT NULL,
    account_id  uuid,
    database_id uuid,
    actor       text NOT NULL,
    user_id     uuid,
    action      text NOT NULL,
    details     json NOT NULL
);
CREATE INDEX audit_entries_of_database ON audit_entries (database_id, at, id);
-- An account's log is read together with that of its databases.
CREATE INDEX audit_entries_by_account ON audit_entries (account_id, at, id) WHERE account_id IS NOT NULL;
-- The log of what concerns no account.
CREATE INDEX audit_entries_of_installation ON audit_entries (at, id) WHERE account_id IS NULL AND database_id IS NULL;
-- Old entries of every log are found by their time.
CREATE INDEX audit_entries_by_age ON audit_entries (at, id);

-- "taken" is NULL until deliveries were made of the event, true from then on.
CREATE TABLE outbox_events (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL,
    database_id  uuid NOT NULL,
    operation_id uuid NOT NULL,
    request_id   text NOT NULL,
    name         text NOT NULL,
    payload      json NOT NULL,
    created_at   timestamptz NOT NULL,
    taken        boolean,
    CONSTRAINT outbox_events_operation_unique UNIQUE (operation_id, name)
);
CREATE INDEX outbox_events_by_age ON outbox_events (created_at, id);
CREATE INDEX outbox_events_waiting ON outbox_events (created_at, id) WHERE taken IS NULL;

-- An endpoint outlives the database that it is bound to, so it does not refer to it: the event of the deletion still goes to
-- it, with all its attempts, and so does what follows a recovery. It never comes to mean all databases.
CREATE TABLE webhook_endpoints (
    id                   uuid PRIMARY KEY,
    account_id           uuid NOT NULL REFERENCES accounts,
    database_id          uuid,
    url                  text NOT NULL,
    sealed_secret        bytea NOT NULL,
    consecutive_failures integer NOT NULL CHECK (consecutive_failures >= 0),
    disabled_at          timestamptz,
    created_at           timestamptz NOT NULL,
    created_by           uuid,
    updated_at           timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX webhook_endpoints_of_account ON webhook_endpoints (account_id, created_at, id);

-- The turn of an endpoint is higher the later it was last served. A claim changes its endpoint's row, so that a second claim
-- for the same endpoint never counts without the first.
CREATE SEQUENCE webhook_turns;
CREATE TABLE webhook_lanes (
    webhook_id uuid PRIMARY KEY REFERENCES webhook_endpoints,
    turn       bigint NOT NULL
) WITH (fillfactor = 50);

-- The event may be a test, which is in no outbox.
CREATE TABLE webhook_deliveries (
    id             uuid PRIMARY KEY,
    webhook_id     uuid NOT NULL REFERENCES webhook_endpoints,
    account_id     uuid NOT NULL REFERENCES accounts,
    event_id       uuid NOT NULL,
    operation_id   uuid NOT NULL,
    request_id     text NOT NULL,
    event          text NOT NULL,
    body           json NOT NULL,
    status         text NOT NULL CHECK (status IN ('pending', 'delivering', 'delivered', 'failed')),
    attempts_used  integer NOT NULL CHECK (attempts_used >= 0),
    attempts_total integer NOT NULL CHECK (attempts_total >= attempts_used),
    created_at     timestamptz NOT NULL,
    finished_at    timestamptz,
    lease_owner    text NOT NULL,
    lease_epoch    bigint NOT NULL,
    lease_until    timestamptz,
    not_before     timestamptz NOT NULL,
    CONSTRAINT webhook_deliveries_event_unique UNIQUE (event_id, webhook_id)
);
-- What has been due longest at each endpoint: a delivery is due since it may be claimed and nobody holds it.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('pending', 'delivering');
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (webhook_id, lease_until) WHERE status = 'delivering';

CREATE TABLE webhook_attempts (
    delivery_id  uuid REFERENCES webhook_deliveries,
    number       integer CHECK (number > 0),
    webhook_id   uuid NOT NULL,
    at           timestamptz NOT NULL,
    took_ns      bigint NOT NULL,
    status_code  integer NOT NULL,
    error        text NOT NULL,
    next_attempt timestamptz,
    CONSTRAINT webhook_attempts_once PRIMARY KEY (delivery_id, number)
);
CREATE INDEX webhook_attempts_of_endpoint ON webhook_attempts (webhook_id, at, delivery_id, number);

--
-- What databases use
--

-- What databases used in an hour. It outlives them, so it does not refer to them. What is older than an hour does not change any
-- more, and goes in the order in which it came: so there is one index, and none by database, which would be half of the table again.
CREATE TABLE usage_samples (
    hour           timestamptz,
    database_id    uuid,
    seen_ms        integer NOT NULL CHECK (seen_ms >= 0),
    active_ms      bigint NOT NULL CHECK (active_ms >= 0),
    waiting_ms     bigint NOT NULL CHECK (waiting_ms >= 0),
    active_peak    integer NOT NULL CHECK (active_peak >= 0),
    waiting_peak   integer NOT NULL CHECK (waiting_peak >= 0),
    queries        bigint NOT NULL CHECK (queries >= 0),
    wait_us        bigint NOT NULL CHECK (wait_us >= 0),
    bytes          bigint NOT NULL CHECK (bytes >= 0),
    backup_bytes   bigint NOT NULL CHECK (backup_bytes >= 0),
    connection_cap integer NOT NULL CHECK (connection_cap >= 0),
    PRIMARY KEY (hour, database_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01);

-- What the samples of a month come to, by database: what is billed.
CREATE TABLE usage_lines (
    month             timestamptz,
    database_id       uuid,
    account_id        uuid NOT NULL,
    name              text NOT NULL,
    seen_ms           bigint NOT NULL CHECK (seen_ms >= 0),
    active_ms         bigint NOT NULL CHECK (active_ms >= 0),
    byte_hours        bigint NOT NULL CHECK (byte_hours >= 0),
    backup_byte_hours bigint NOT NULL CHECK (backup_byte_hours >= 0),
    PRIMARY KEY (month, database_id)
) WITH (fillfactor = 50);
CREATE INDEX usage_lines_of_account ON usage_lines (account_id, month, database_id);

-- Up to where what the agent of a server saw is in these tables. Who adds to them holds the row.
CREATE TABLE usage_taken (
    server_id uuid PRIMARY KEY REFERENCES servers ON DELETE CASCADE,
    position  text NOT NULL,
    until     timestamptz NOT NULL,
    asked_at  timestamptz NOT NULL
);

-- Drills, each of which has a second of a database back from the archive of its server, and compares it with what is known of
-- it. "facts" is what it has found; "repeats" says that one that has failed came before, of the same second.
CREATE TABLE drills (
    id              uuid PRIMARY KEY,
    server_id       uuid NOT NULL REFERENCES servers ON DELETE CASCADE,
    database_id     uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    point_in_time   timestamptz NOT NULL,
    filename        text NOT NULL,
    manifest_sha256 text NOT NULL,
    repeats         boolean NOT NULL,
    begun_at        timestamptz NOT NULL,
    ended_at        timestamptz,
    outcome         text NOT NULL CHECK (outcome IN ('', 'proven', 'failed', 'not_run')),
    why             text NOT NULL,
    took_ms         bigint NOT NULL,
    facts           json NOT NULL,
    CONSTRAINT drills_end CHECK ((ended_at IS NULL) = (outcome = ''))
);
CREATE UNIQUE INDEX drills_one_open ON drills (server_id) WHERE ended_at IS NULL;
CREATE INDEX drills_begun ON drills (begun_at, id);
CREATE INDEX drills_of_server ON drills (server_id, begun_at, id);
CREATE INDEX drills_of_database ON drills (database_id, begun_at, id);

-- When the next drill of a server is, and of what, where chance does not say it. Who begins or ends one holds the row.
CREATE TABLE drill_plans (
    server_id      uuid PRIMARY KEY REFERENCES servers ON DELETE CASCADE,
    due_at         timestamptz NOT NULL,
    database_id    uuid REFERENCES databases ON DELETE SET NULL,
    point_in_time  timestamptz,
    repeats        boolean NOT NULL,
    unproven_since timestamptz
);
CREATE INDEX drill_plans_database ON drill_plans (database_id) WHERE database_id IS NOT NULL;

--
-- Rates and the key ring
--

-- "tat" is one instant in microseconds. It has no index, so that an update stays within its page. Losing the table in a crash only
-- fills the buckets again.
--
-- Hosts lease stretches of a bucket and give back what they did not use: "free" is what was given back and lies before tat, and
-- "granted" what the last request for a lease was granted. The requests of some classes are counted exactly: "used" are the times,
-- in microseconds, at which those of the last period were let in, and tat is the end of the last one's period, so that a bucket is
-- swept as ever. "taken" says whether the last of them was let in. "granted" and "taken" are read by the statement that wrote them.
CREATE UNLOGGED TABLE rate_buckets (
    bucket  text COLLATE "C" PRIMARY KEY,
    tat     bigint NOT NULL,
    taken   boolean NOT NULL,
    free    int8multirange NOT NULL DEFAULT '{}',
    granted int8range NOT NULL DEFAULT 'empty',
    used    bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

-- The keys that encrypt stored secrets, by their fingerprints, and which host has which.
CREATE TABLE keyring_keys (
    fingerprint text PRIMARY KEY,
    status      text NOT NULL CHECK (status IN ('staged', 'primary', 'old', 'retired')),
    since       timestamptz NOT NULL,
    resealed_at timestamptz
);
CREATE UNIQUE INDEX keyring_keys_one ON keyring_keys (status) WHERE status IN ('staged', 'primary');

CREATE TABLE keyring_hosts (
    id      uuid PRIMARY KEY,
    name    text NOT NULL,
    keys    text[] NOT NULL,
    seals   text NOT NULL,
    seen_at timestamptz NOT NULL
);

-- Who decides over the ring locks its one row.
CREATE TABLE keyring_turn (one boolean PRIMARY KEY CHECK (one));
