-- The functions of the ledger. Run as its tables are; may be run again, and then repairs.

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
        INSERT INTO ledger.operation AS o (id, epoch, vouched_at)
            VALUES (p_operation, p_epoch, CASE WHEN p_epoch = 0 THEN '-infinity'::timestamptz END)
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
