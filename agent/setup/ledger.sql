-- The ledger: what this agent was told, what it has made, and for whom. Run once, in the maintenance database as pgherd_agent, which
-- owns schema ledger. Whoever changes it, or a function that agents call, raises setup.LedgerFormat.

-- What the ledger looks like.
CREATE TABLE ledger.format (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    number integer NOT NULL
);

-- The agent in charge. A connection of any other is refused.
CREATE TABLE ledger.agent (
    single   boolean     PRIMARY KEY DEFAULT true CHECK (single),
    instance text        NOT NULL,
    since    timestamptz NOT NULL DEFAULT now()
);

-- The name of the maintenance database, which the first agent gives it. It stays with the data, also on another machine.
CREATE TABLE ledger.installation (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    id     uuid    NOT NULL DEFAULT pg_catalog.gen_random_uuid()
);

-- Operations, with the highest lease epoch that has spoken for each. A closed one takes no more commands.
CREATE TABLE ledger.operation (
    id        text        PRIMARY KEY,
    epoch     bigint      NOT NULL,
    closed    boolean     NOT NULL DEFAULT false,
    spoken_at timestamptz NOT NULL DEFAULT now(), -- when its last command came; what ended long ago is forgotten

    -- When a control plane said that its metadata have the operation. Null: none has. -infinity: it need not be in any.
    vouched_at timestamptz
);
CREATE INDEX operation_unvouched ON ledger.operation (id) WHERE vouched_at IS NULL;
CREATE INDEX operation_vouched ON ledger.operation (vouched_at, id) WHERE vouched_at > '-infinity';

-- Commands that were admitted. One without a result was begun: whoever gets it again observes and goes on.
CREATE TABLE ledger.command (
    operation_id text   NOT NULL, -- empty for a command of no operation
    step         text   NOT NULL,
    resource     text   NOT NULL,
    generation   bigint NOT NULL,
    kind         text   NOT NULL,
    payload_hash text   NOT NULL,
    result       json,
    PRIMARY KEY (operation_id, step, resource, generation)
);

-- Commands that are being worked on. Many of their steps do not wait for the disk, and a PostgreSQL that recovers from a crash
-- may have lost them. It has emptied this table then, so that none of these commands ends as if nothing had happened.
CREATE UNLOGGED TABLE ledger.running (
    operation_id text   NOT NULL,
    step         text   NOT NULL,
    resource     text   NOT NULL,
    generation   bigint NOT NULL,
    PRIMARY KEY (operation_id, step, resource, generation)
);

-- The highest generation admitted of each kind of command on each resource, and the highest that was done.
CREATE TABLE ledger.generation (
    kind       text   NOT NULL,
    resource   text   NOT NULL,
    generation bigint NOT NULL,
    applied    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, resource)
);

-- Databases that the platform made or is making. A database whose oid is not here is none of ours.
CREATE TABLE ledger.database (
    id             text    PRIMARY KEY,
    name           text    NOT NULL UNIQUE,
    role_model     text    NOT NULL,
    connection_cap integer NOT NULL CHECK (connection_cap >= 0), -- 0: none
    made_by        text    NOT NULL,                             -- the operation
    oid            oid     UNIQUE,                               -- null until it has its name
    networks       cidr[]  NOT NULL DEFAULT '{}',                -- empty: every address
    welcome        inet[]  NOT NULL DEFAULT '{}',                -- admitted beside networks: servers that send clients on
    open           boolean NOT NULL DEFAULT true,                -- customers may log in
    account_id     text    NOT NULL DEFAULT '',                  -- whose it is; empty where nobody has said it
    backup_key     bytea   NOT NULL CHECK (octet_length(backup_key) = 32), -- encrypts its backups

    -- What the service has set in a database, and nobody else: timeouts (of statements, locks, and idle in transaction, in
    -- milliseconds; null: none), and that transactions are read-only by default. settings_since is when these settings came, and
    -- null once no session is older. reconnected says that PgBouncer was told of them since, and renewing that its clients have to
    -- begin anew where it remembers for them what they began with.
    timeouts       bigint[],
    read_only      boolean NOT NULL DEFAULT false,
    settings_since timestamptz,
    reconnected    boolean NOT NULL DEFAULT true,
    renewing       boolean NOT NULL DEFAULT false,

    -- A transaction after the default privileges of an overlay: older ones may have made tables without them.
    overlay_xact   xid8,

    -- A database that is out of service: the name that PostgreSQL has it under meanwhile. Its row keeps the name that it had, and
    -- has again afterwards. Null: it is in service. rejoined_by is the operation that has last put it back into service, from the
    -- moment when it has its name again.
    isolated       text    UNIQUE,
    rejoined_by    text
);
CREATE INDEX database_unsettled ON ledger.database (oid) WHERE settings_since IS NOT NULL;

-- Which of PostgreSQL's databases a database was when, for as long as the archive may be asked for it: what replaces a database has
-- another OID. Until is null for what it is now.
CREATE TABLE ledger.incarnation (
    database_id text        NOT NULL REFERENCES ledger.database ON DELETE CASCADE,
    oid         oid         NOT NULL,
    since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    until       timestamptz,
    PRIMARY KEY (database_id, oid)
);

CREATE FUNCTION ledger.incarnate() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.incarnation SET until = clock_timestamp()
        WHERE database_id = NEW.id AND until IS NULL AND oid IS DISTINCT FROM NEW.oid;
    IF NEW.oid IS NOT NULL THEN
        INSERT INTO ledger.incarnation (database_id, oid) VALUES (NEW.id, NEW.oid) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER incarnate AFTER INSERT OR UPDATE OF oid ON ledger.database FOR EACH ROW EXECUTE FUNCTION ledger.incarnate();

-- A database that is in service here is no other server's: nobody is sent on for its name any more. One that comes back is sent on
-- until customers are let in here.
CREATE FUNCTION ledger.end_forward() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM pooler.forward WHERE database = NEW.name AND (NEW.open OR database_id <> NEW.id);
    RETURN NULL;
END
$$;
CREATE TRIGGER end_forward AFTER INSERT OR UPDATE OF name, isolated, open ON ledger.database
    FOR EACH ROW WHEN (NEW.isolated IS NULL) EXECUTE FUNCTION ledger.end_forward();

-- A commit that the agent makes where nobody else does: a moment is known to be replayed once a later commit is seen.
CREATE TABLE ledger.heartbeat (
    single boolean     PRIMARY KEY DEFAULT true CHECK (single),
    at     timestamptz NOT NULL
);

-- Marks of what databases were: one each time the agent sees that a database has changed, which it looks for once an hour. What is
-- had back of a moment has those that were set until then. A mark has what PostgreSQL counted of the rows that were written and
-- removed, since when it counts, and when the database was last seen as the mark before says; its digest includes that one's.
CREATE TABLE ledger.canary (
    database_id text        NOT NULL REFERENCES ledger.database ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    oid         oid         NOT NULL,
    changes     bigint      NOT NULL,
    counted     timestamptz NOT NULL,
    same_until  timestamptz NOT NULL,
    digest      text        NOT NULL CHECK (length(digest) = 64),
    PRIMARY KEY (database_id, at)
);
CREATE INDEX canary_at ON ledger.canary (at);

-- Roles that the platform made. A role whose oid is not here is none of ours. A login is enabled when it may log in while its
-- database is open, which a prepared, revoked or expired one may not. changed_at is when its password changed, or its log-in ended,
-- by this server's clock.
CREATE TABLE ledger.role (
    name                  text    NOT NULL PRIMARY KEY,
    oid                   oid     NOT NULL UNIQUE,
    database_id           text    NOT NULL REFERENCES ledger.database,
    part                  text    NOT NULL CHECK (part IN (
        'owner', 'runtime', 'readonly', 'additional', 'holder', 'read_group', 'write_group')),
    connection_limit      integer NOT NULL DEFAULT 0 CHECK (connection_limit >= 0), -- 0: none of its own
    enabled               boolean NOT NULL DEFAULT true,
    credential_generation bigint  NOT NULL DEFAULT 0, -- of the last rotation
    changed_at            timestamptz,

    -- What the end of a change leaves to be watched for: whether a session that comes late has set a password of its own (the mark
    -- is that of the verifier as it was set, see pooler.verifier_mark), and the virtual transactions of the log-ins, of whomever,
    -- that stood in the middle then. Null: there are none any more.
    verifier_mark         text,
    parked                text[],

    -- The group that an additional role was made a member of: if it is lost, the role is to be one of the next of that name, too.
    member_of             text
);
CREATE INDEX role_database ON ledger.role (database_id);
CREATE INDEX role_changed ON ledger.role (changed_at);
CREATE INDEX role_parked ON ledger.role (oid) WHERE parked IS NOT NULL;

-- Roles that are gone for their database, which something that others hold keeps from being dropped. They have lost
-- login, password and name.
CREATE TABLE ledger.dead_role (
    name text NOT NULL PRIMARY KEY,
    oid  oid  NOT NULL UNIQUE
);

-- Long work that was begun, a step of an operation each, so that closing the operation finds what it left. Its result is that of
-- the command.
CREATE TABLE ledger.job (
    operation_id text    NOT NULL,
    step         text    NOT NULL,
    kind         text    NOT NULL,
    database_id  text    NOT NULL,
    payload      json    NOT NULL, -- the command's
    -- How many attempts at it have begun and not ended before PostgreSQL or the agent did, with the one that is being made.
    cut_short    integer NOT NULL DEFAULT 0,
    -- The transaction in which it changes a customer's database, entered before the change is made; null: none, or not yet. What
    -- has become of it says what has become of the job.
    xact         xid8,
    PRIMARY KEY (operation_id, step)
);

-- Agents of other servers that are admitted, for an operation each and one database. The token itself only they have.
CREATE TABLE ledger.peer (
    operation_id text PRIMARY KEY,
    database_id  text NOT NULL,
    token_sha256 text NOT NULL CHECK (length(token_sha256) = 64)
);

-- Where PostgreSQL comes through to the peer of an operation that is followed: with that password, on that port of the loopback.
CREATE TABLE ledger.line (
    operation_id text    PRIMARY KEY,
    database     text    NOT NULL, -- its name
    password     text    NOT NULL,
    url          text    NOT NULL,
    ca           text    NOT NULL,
    token        text    NOT NULL,
    port         integer NOT NULL
);

-- Room on the disk of the backup files that is kept for uploads. What operations have reserved is known to the agent alone.
CREATE TABLE ledger.reservation (
    claimant   text        NOT NULL, -- the ID of what it is for
    purpose    text        NOT NULL,
    bytes      bigint      NOT NULL CHECK (bytes >= 0),
    used       bigint      NOT NULL DEFAULT 0 CHECK (used >= 0),
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    kept_until timestamptz NOT NULL,
    PRIMARY KEY (claimant, purpose)
);

-- Copies of databases, each with a login of its name, in whose transaction it is entered.
CREATE TABLE ledger.copy (
    name         text    NOT NULL PRIMARY KEY,
    purpose      text    NOT NULL,
    operation_id text    NOT NULL,
    database_id  text    NOT NULL, -- that it is a copy of
    until_closed boolean NOT NULL, -- wanted until its operation is closed; otherwise by the attempt that has made it

    -- A copy that is to become a database. Once it is whole and proved: its oid, what is told of it, since when, and whose it is; it
    -- is no longer until_closed where it had to give way to others before its switch began. While the database whose place it takes
    -- is shut for that: whether it was open before. Once it has that place: the oid of what was there, which is called
    -- replaced_... then, and is what is dropped when nobody wants this row any more.
    oid          oid,
    ready        json,
    reopen       boolean,
    replaced     oid,
    ready_at     timestamptz,
    account_id   text,
    UNIQUE (operation_id, purpose)
);

-- Databases whose changes are kept for an operation that moves them to another server: by a replication slot, a publication and a
-- login, all named after the operation. Its row is there before them, and goes after them. Once the snapshot is taken from which
-- the other server goes on: what the database was then, beside the rows of its tables. Why says why the changes are not kept any
-- more.
CREATE TABLE ledger.followed (
    operation_id text NOT NULL PRIMARY KEY,
    database_id  text NOT NULL,
    schema       text,
    objects      text, -- large ones
    why          text NOT NULL DEFAULT ''
);

-- Databases that follow those of another server, by a subscription named after the operation. What would be in the way of that is
-- taken from their tables before: back are the statements that put it back. Reached is the position up to which all is there; the
-- subscription is dropped from then on.
CREATE TABLE ledger.following (
    operation_id text   NOT NULL PRIMARY KEY,
    database_id  text   NOT NULL,
    back         text[] NOT NULL,
    reached      pg_lsn
);

-- Databases that customers are kept out of for an operation that moves them to another server, and whether they were open before.
CREATE TABLE ledger.parted (
    operation_id text    NOT NULL PRIMARY KEY,
    database_id  text    NOT NULL,
    reopen       boolean NOT NULL
);

-- What is kept of a database that another server has now: the key of its backups, as long as there are any.
CREATE TABLE ledger.departed (
    database_id  text  NOT NULL PRIMARY KEY,
    operation_id text  NOT NULL,
    backup_key   bytea NOT NULL CHECK (octet_length(backup_key) = 32)
);
