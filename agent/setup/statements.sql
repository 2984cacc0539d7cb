-- What reads the statements that the server counts (pg_stat_statements), where it has that. Nothing of it is in a customer's
-- database. Run by a superuser in the maintenance database; may be run again, and then repairs.

-- The service's own statements would push out those of customers, and some hold verifiers. The agent sets this for the logins
-- that it makes, too. A server that has not loaded the library knows the parameter only by its name.
ALTER ROLE pgherd_agent SET pg_stat_statements.track = 'none';
ALTER ROLE pgherd_pooler SET pg_stat_statements.track = 'none';
GRANT SET ON PARAMETER pg_stat_statements.track TO pgherd_agent;

-- The size of the file in which the server keeps the texts, which nothing bounds.
CREATE OR REPLACE FUNCTION server.statement_texts() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT size FROM pg_stat_file('pg_stat_tmp/pgss_query_texts.stat', true)), 0)
$$;
REVOKE ALL ON FUNCTION server.statement_texts() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION server.statement_texts() TO pgherd_agent;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'pg_stat_statements') THEN
        CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA server;
        ALTER EXTENSION pg_stat_statements SET SCHEMA server;
        ALTER EXTENSION pg_stat_statements UPDATE;
        GRANT EXECUTE ON FUNCTION server.pg_stat_statements_reset TO pgherd_agent; -- its arguments differ between versions
    END IF;
END
$$;
