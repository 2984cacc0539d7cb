-- The ledger: what this agent was told, what it has made, and for whom. Run in the maintenance database as pgherd_agent, which
-- owns schema ledger; may be run again.

-- The agent in charge. A connection of any other is refused.
CREATE TABLE IF NOT EXISTS ledger.agent (
    single   boolean     PRIMARY KEY DEFAULT true CHECK (single),
    instance text        NOT NULL,
    since    timestamptz NOT NULL DEFAULT now()
);

-- Operations, with the highest lease epoch that has spoken for each. A closed one takes no more commands.
CREATE TABLE IF NOT EXISTS ledger.operation (
    id     text    PRIMARY KEY,
    epoch  bigint  NOT NULL,
    closed boolean NOT NULL DEFAULT false
);
-- When its last command came. What ended long ago is forgotten.
ALTER TABLE ledger.operation ADD COLUMN IF NOT EXISTS spoken_at timestamptz NOT NULL DEFAULT now();

-- Commands that were admitted. One without a result was begun: whoever gets it again observes and goes on.
CREATE TABLE IF NOT EXISTS ledger.command (
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
CREATE UNLOGGED TABLE IF NOT EXISTS ledger.running (
    operation_id text   NOT NULL,
    step         text   NOT NULL,
    resource     text   NOT NULL,
    generation   bigint NOT NULL,
    PRIMARY KEY (operation_id, step, resource, generation)
);

-- The highest generation admitted of each kind of command on each resource.
CREATE TABLE IF NOT EXISTS ledger.generation (
    kind       text   NOT NULL,
    resource   text   NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (kind, resource)
);
-- The highest that was done came later. What is not known to have been done counts as not done: it is sent again.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                    WHERE attrelid = 'ledger.generation'::pg_catalog.regclass AND attname = 'applied' AND NOT attisdropped) THEN
        ALTER TABLE ledger.generation ADD COLUMN applied bigint NOT NULL DEFAULT 0;
        UPDATE ledger.generation g SET applied = g.generation
         WHERE EXISTS (SELECT FROM ledger.command c WHERE c.kind = g.kind AND c.resource = g.resource
                          AND c.generation = g.generation AND c.result IS NOT NULL);
    END IF;
END
$$;

-- Databases that the platform made or is making. A database whose oid is not here is none of ours.
CREATE TABLE IF NOT EXISTS ledger.database (
    id             text    PRIMARY KEY,
    name           text    NOT NULL UNIQUE,
    role_model     text    NOT NULL,
    connection_cap integer NOT NULL CHECK (connection_cap >= 0), -- 0: none
    made_by        text    NOT NULL,                             -- the operation
    oid            oid     UNIQUE,                               -- null until it has its name
    networks       cidr[]  NOT NULL DEFAULT '{}'                 -- empty: every address
);

-- Roles that the platform made. A role whose oid is not here is none of ours.
CREATE TABLE IF NOT EXISTS ledger.role (
    name        text NOT NULL PRIMARY KEY,
    oid         oid  NOT NULL UNIQUE,
    database_id text NOT NULL REFERENCES ledger.database,
    part        text NOT NULL CHECK (part IN ('owner', 'runtime', 'readonly', 'holder', 'read_group', 'write_group'))
);
CREATE INDEX IF NOT EXISTS role_database ON ledger.role (database_id);

-- Additional roles came later than the tables. A database is open while customers may log in; a login is enabled when it may log
-- in while its database is open, which a prepared, revoked or expired one may not. changed_at is when its password changed, or
-- its log-in ended, by this server's clock.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                    WHERE attrelid = 'ledger.database'::pg_catalog.regclass AND attname = 'open' AND NOT attisdropped) THEN
        ALTER TABLE ledger.database ADD COLUMN open boolean NOT NULL DEFAULT true;
        UPDATE ledger.database d SET open = false
         WHERE d.oid IS NOT NULL AND NOT EXISTS (SELECT FROM pooler.gate g WHERE g.database = d.name AND g.open);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                    WHERE attrelid = 'ledger.role'::pg_catalog.regclass AND attname = 'enabled' AND NOT attisdropped) THEN
        ALTER TABLE ledger.role
            ADD COLUMN connection_limit      integer NOT NULL DEFAULT 0 CHECK (connection_limit >= 0), -- 0: none of its own
            ADD COLUMN enabled               boolean NOT NULL DEFAULT true,
            ADD COLUMN credential_generation bigint  NOT NULL DEFAULT 0, -- of the last rotation
            ADD COLUMN changed_at            timestamptz,
            DROP CONSTRAINT role_part_check,
            ADD CONSTRAINT role_part_check CHECK (part IN (
                'owner', 'runtime', 'readonly', 'additional', 'holder', 'read_group', 'write_group'));
        CREATE INDEX role_changed ON ledger.role (changed_at);
    END IF;
END
$$;

-- What the end of a change leaves to be watched for: whether a session that comes late has set a password of its own (the mark is
-- that of the verifier as it was set, see pooler.verifier_mark), and the virtual transactions of the log-ins, of whomever, that
-- stood in the middle then. Null: there are none any more.
ALTER TABLE ledger.role ADD COLUMN IF NOT EXISTS verifier_mark text, ADD COLUMN IF NOT EXISTS parked text[];
CREATE INDEX IF NOT EXISTS role_parked ON ledger.role (oid) WHERE parked IS NOT NULL;

-- The group that an additional role was made a member of: if it is lost, the role is to be one of the next of that name, too.
ALTER TABLE ledger.role ADD COLUMN IF NOT EXISTS member_of text;

-- Whose a database is: empty until the control plane has said it.
ALTER TABLE ledger.database ADD COLUMN IF NOT EXISTS account_id text NOT NULL DEFAULT '';

-- What the service has set in a database, and nobody else: timeouts (of statements, locks, and idle in transaction, in
-- milliseconds; null: none), and that transactions are read-only by default. settings_since is when these settings came, and null
-- once no session is older. reconnected says that PgBouncer was told of them since, and renewing that its clients have to begin
-- anew where it remembers for them what they began with.
ALTER TABLE ledger.database ADD COLUMN IF NOT EXISTS timeouts bigint[], ADD COLUMN IF NOT EXISTS read_only boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS settings_since timestamptz, ADD COLUMN IF NOT EXISTS reconnected boolean NOT NULL DEFAULT true,
    ADD COLUMN IF NOT EXISTS renewing boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS database_unsettled ON ledger.database (oid) WHERE settings_since IS NOT NULL;

-- A transaction after the default privileges of an overlay: older ones may have made tables without them.
ALTER TABLE ledger.database ADD COLUMN IF NOT EXISTS overlay_xact xid8;

-- A database that is out of service: the name that PostgreSQL has it under meanwhile. Its row keeps the name that it had, and has
-- again afterwards. Null: it is in service. rejoined_by is the operation that has last put it back into service, from the moment
-- when it has its name again.
ALTER TABLE ledger.database ADD COLUMN IF NOT EXISTS isolated text UNIQUE, ADD COLUMN IF NOT EXISTS rejoined_by text;

-- Roles that are gone for their database, which something that others hold keeps from being dropped. They have lost
-- login, password and name.
CREATE TABLE IF NOT EXISTS ledger.dead_role (
    name text NOT NULL PRIMARY KEY,
    oid  oid  NOT NULL UNIQUE
);

-- Long work that was begun, a step of an operation each, so that closing the operation finds what it left. Its result is that of
-- the command.
CREATE TABLE IF NOT EXISTS ledger.job (
    operation_id text    NOT NULL,
    step         text    NOT NULL,
    kind         text    NOT NULL,
    database_id  text    NOT NULL,
    payload      json    NOT NULL, -- the command's
    -- How many attempts at it have begun and not ended before PostgreSQL or the agent did, with the one that is being made.
    cut_short    integer NOT NULL DEFAULT 0,
    PRIMARY KEY (operation_id, step)
);

-- The transaction in which a job changes a customer's database, entered before the change is made; null: none, or not yet. What has
-- become of it says what has become of the job.
ALTER TABLE ledger.job ADD COLUMN IF NOT EXISTS xact xid8;

-- Backups of earlier versions, which may still run when this is. The agent that takes charge enters them as jobs.
CREATE TABLE IF NOT EXISTS ledger.backup (
    operation_id text NOT NULL PRIMARY KEY,
    database_id  text NOT NULL,
    filename     text NOT NULL
);
-- Whether it is complete only when its file is verified. Of one that an earlier version began, nothing is known: its file counts.
ALTER TABLE ledger.backup ADD COLUMN IF NOT EXISTS verify boolean NOT NULL DEFAULT false;
-- As that of a job.
ALTER TABLE ledger.backup ADD COLUMN IF NOT EXISTS cut_short integer NOT NULL DEFAULT 0;

-- Room on the server's disks that is promised to somebody, or that they wait for.
CREATE TABLE IF NOT EXISTS ledger.reservation (
    operation_id text        NOT NULL, -- where kept_until is set, the ID of what it is for: an upload has no operation
    purpose      text        NOT NULL,
    disk         bigint      NOT NULL, -- the number of its device
    bytes        bigint      NOT NULL CHECK (bytes >= 0),
    used         bigint      NOT NULL DEFAULT 0 CHECK (used >= 0),
    waiting      boolean     NOT NULL,
    since        timestamptz NOT NULL DEFAULT clock_timestamp(),
    kept_until   timestamptz, -- null: for as long as the agent in charge works on the operation
    account_id   text,        -- of a restore's copy: whose that is
    PRIMARY KEY (operation_id, purpose)
);
-- It was of dumps and copies only, and emptied by a crash of PostgreSQL.
ALTER TABLE ledger.reservation ADD COLUMN IF NOT EXISTS kept_until timestamptz, ADD COLUMN IF NOT EXISTS account_id text,
    DROP CONSTRAINT IF EXISTS reservation_purpose_check;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = 'ledger.reservation'::pg_catalog.regclass AND relpersistence = 'u') THEN
        ALTER TABLE ledger.reservation SET LOGGED;
    END IF;
END
$$;

-- Copies of databases, each with a login of its name, in whose transaction it is entered. Those that agents of earlier versions
-- have made are entered by the one that takes charge.
CREATE TABLE IF NOT EXISTS ledger.copy (
    name         text    NOT NULL PRIMARY KEY,
    purpose      text    NOT NULL,
    operation_id text    NOT NULL,
    database_id  text    NOT NULL, -- that it is a copy of; empty where that is not known
    until_closed boolean NOT NULL, -- wanted until its operation is closed; otherwise by the attempt that has made it
    UNIQUE (operation_id, purpose)
);

-- A copy that is to become a database. Once it is whole and proved: its oid, what is told of it, since when, and whose it is; it
-- is no longer until_closed where it had to give way to others before its switch began. While the database whose
-- place it takes is shut for that: whether it was open before. Once it has that place: the oid of what was there, which is called
-- replaced_... then, and is what is dropped when nobody wants this row any more.
ALTER TABLE ledger.copy ADD COLUMN IF NOT EXISTS oid oid, ADD COLUMN IF NOT EXISTS ready json,
    ADD COLUMN IF NOT EXISTS reopen boolean, ADD COLUMN IF NOT EXISTS replaced oid,
    ADD COLUMN IF NOT EXISTS ready_at timestamptz, ADD COLUMN IF NOT EXISTS account_id text;

-- Begins the transaction that shuts a database whose place a copy is to take. A crash may have left it shut: then it is known
-- since whether it was open. It does not where the copy had to give way.
CREATE OR REPLACE FUNCTION ledger.begin_place(p_copy text, p_open boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.copy c SET reopen = coalesce(c.reopen, p_open) WHERE c.name = p_copy AND c.until_closed;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the copy had to give way' USING ERRCODE = 'PGH03';
    END IF;
END
$$;

-- Begins the transaction in which a copy takes the place of a database. It does not where the database has been opened again.
CREATE OR REPLACE FUNCTION ledger.take_place(p_copy text, p_replaced oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.copy c SET replaced = p_replaced WHERE c.name = p_copy AND c.reopen IS NOT NULL AND c.replaced IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the switch was given up' USING ERRCODE = 'PGH03';
    END IF;
END
$$;

-- Begins the transaction that opens a database again which a copy has not taken the place of.
CREATE OR REPLACE FUNCTION ledger.give_up_place(p_copy text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.copy c SET reopen = NULL WHERE c.name = p_copy AND c.replaced IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the switch was made' USING ERRCODE = 'PGH03';
    END IF;
END
$$;

-- Ends the transaction that takes a database out of service: it is the one that the agent has made, under its other name. No
-- session of older settings is left, nor anything for PgBouncer to be told.
CREATE OR REPLACE FUNCTION ledger.isolate(p_database text, p_as text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.database d SET isolated = p_as, open = false, rejoined_by = NULL,
        settings_since = NULL, reconnected = true, renewing = false
     WHERE d.id = p_database AND d.isolated IS NULL
       AND EXISTS (SELECT FROM pg_database p WHERE p.oid = d.oid AND p.datname = p_as);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the database is another one' USING ERRCODE = 'PGH03';
    END IF;
END
$$;

-- Ends the transaction that puts a database back into service for an operation. Nobody gets in yet.
CREATE OR REPLACE FUNCTION ledger.rejoin(p_database text, p_operation text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.database d SET isolated = NULL, rejoined_by = p_operation
     WHERE d.id = p_database AND d.isolated IS NOT NULL
       AND EXISTS (SELECT FROM pg_database p WHERE p.oid = d.oid AND p.datname = d.name);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the database is another one' USING ERRCODE = 'PGH03';
    END IF;
END
$$;

-- Fails unless a copy has what belongs to a database as a whole as the database has it: privileges with their grantors, limit,
-- comment, and the names of what is set for these roles (0: everybody).
CREATE OR REPLACE FUNCTION ledger.assert_like(p_copy oid, p_database oid, p_roles oid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT count(DISTINCT whole) FROM (
        SELECT coalesce((SELECT string_agg(a::text, '' ORDER BY a::text)
                FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a), '')
            || d.datconnlimit::text || coalesce(shobj_description(d.oid, 'pg_database'), '')
            || coalesce((SELECT string_agg(s.setrole::text || split_part(e, '=', 1), ',' ORDER BY s.setrole, e)
                FROM pg_db_role_setting s, unnest(s.setconfig) e WHERE s.setdatabase = d.oid AND s.setrole = ANY (p_roles)), '')
        FROM pg_database d WHERE d.oid IN (p_copy, p_database)) two (whole)) <> 1 THEN
        RAISE EXCEPTION 'the database was changed while its place was taken' USING ERRCODE = 'PGH03';
    END IF;
END
$$;

-- Admits a command, or says why not. Its answer is one of: go (do it, or go on with it), done (with the result), fenced,
-- closed, conflict, stale. A command about all of a database's access, allowlist or settings that was done is stale, and no longer done,
-- once a newer one was admitted: what is in force may be that one's.
CREATE OR REPLACE FUNCTION ledger.admit(
    p_operation text, p_epoch bigint, p_closing boolean, p_step text, p_resource text, p_generation bigint, p_kind text,
    p_hash text, OUT verdict text, OUT result json
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    spoken ledger.operation;
    known  ledger.command;
    newest bigint;
BEGIN
    IF p_operation <> '' THEN
        INSERT INTO ledger.operation AS o (id, epoch) VALUES (p_operation, p_epoch)
            ON CONFLICT (id) DO UPDATE SET epoch = greatest(o.epoch, excluded.epoch), spoken_at = now()
            RETURNING * INTO spoken;
        IF spoken.epoch > p_epoch THEN
            verdict := 'fenced';
            RETURN;
        ELSIF spoken.closed AND NOT p_closing THEN
            verdict := 'closed';
            RETURN;
        END IF;
    END IF;

    SELECT * INTO known FROM ledger.command c
     WHERE c.operation_id = p_operation AND c.step = p_step AND c.resource = p_resource AND c.generation = p_generation;
    IF known.payload_hash <> p_hash OR known.kind <> p_kind THEN
        verdict := 'conflict';
        RETURN;
    ELSIF known.result IS NOT NULL AND p_kind IN ('database.access', 'database.allowlist', 'database.configure') AND EXISTS (
        SELECT FROM ledger.generation g WHERE g.kind = p_kind AND g.resource = p_resource AND g.generation > p_generation) THEN
        verdict := 'stale';
        RETURN;
    ELSIF known.result IS NOT NULL THEN
        verdict := 'done';
        result := known.result;
        RETURN;
    END IF;

    INSERT INTO ledger.generation AS g (kind, resource, generation) VALUES (p_kind, p_resource, p_generation)
        ON CONFLICT (kind, resource) DO UPDATE SET generation = greatest(g.generation, excluded.generation)
        RETURNING g.generation INTO newest;
    IF newest > p_generation THEN
        verdict := 'stale';
        RETURN;
    END IF;

    INSERT INTO ledger.command (operation_id, step, resource, generation, kind, payload_hash)
        VALUES (p_operation, p_step, p_resource, p_generation, p_kind, p_hash) ON CONFLICT DO NOTHING;
    INSERT INTO ledger.running VALUES (p_operation, p_step, p_resource, p_generation) ON CONFLICT DO NOTHING;
    verdict := 'go';
END
$$;

-- Stores the result of a command. Earlier generations of commands of no operation need no memory: they are stale.
CREATE OR REPLACE FUNCTION ledger.conclude(
    p_operation text, p_step text, p_resource text, p_generation bigint, p_kind text, p_result json
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM ledger.running r
     WHERE r.operation_id = p_operation AND r.step = p_step AND r.resource = p_resource AND r.generation = p_generation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'PostgreSQL has crashed since the command began' USING ERRCODE = 'PGH02';
    END IF;
    UPDATE ledger.command c SET result = p_result
     WHERE c.operation_id = p_operation AND c.step = p_step AND c.resource = p_resource AND c.generation = p_generation;
    UPDATE ledger.generation g SET applied = p_generation
     WHERE g.kind = p_kind AND g.resource = p_resource AND g.applied < p_generation;
    IF p_operation = '' THEN
        DELETE FROM ledger.command c
         WHERE c.operation_id = '' AND c.kind = p_kind AND c.resource = p_resource AND c.generation < p_generation;
    END IF;
END
$$;

-- Refuses an agent that is no longer in charge. Every connection begins with it.
CREATE OR REPLACE FUNCTION ledger.assert_in_charge(p_instance text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger.agent a WHERE a.instance = p_instance) THEN
        RAISE EXCEPTION 'another agent is in charge of this server' USING ERRCODE = 'PGH01';
    END IF;
END
$$;
