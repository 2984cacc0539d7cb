-- What the agent, which is no superuser, may have the server do and see beyond what its login may. Run by a superuser in the
-- maintenance database; may be run again, and then repairs. These functions find nothing by a name that somebody else could take,
-- and read nothing that the agent could have changed.

-- Cancels the task that a worker of autovacuum began then, or ends the worker. It does so in customers' databases only, which no
-- superuser owns, and to no task that is younger than two seconds. It returns nothing where that is not so, or no longer.
CREATE OR REPLACE FUNCTION server.end_autovacuum(p_pid integer, p_begun timestamptz, p_worker boolean) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p_worker THEN pg_terminate_backend(a.pid) ELSE pg_cancel_backend(a.pid) END
    FROM pg_stat_get_activity(NULL) a JOIN pg_database d ON d.oid = a.datid JOIN pg_roles o ON o.oid = d.datdba
    WHERE a.pid = p_pid AND a.backend_type = 'autovacuum worker' AND NOT o.rolsuper
        AND a.query_start = p_begun AND a.query_start < clock_timestamp() - interval '2 s'
$$;

-- How many snapshots each session has exported that others can still use, and the bytes of their files.
CREATE OR REPLACE FUNCTION server.exported_snapshots() RETURNS TABLE (pid integer, files bigint, bytes numeric)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.pid, count(*), sum(coalesce(s.size, 0))
    FROM (SELECT pg_stat_get_backend_pid(('x' || left(name, 8))::bit(32)::integer) AS pid,
            (pg_stat_file('pg_snapshots/' || name, true)).size
        FROM pg_ls_dir('pg_snapshots') AS name WHERE name ~ '^[0-9A-F]{8}-') s
    WHERE s.pid IS NOT NULL GROUP BY s.pid
$$;

-- How many files a database has in the data directory.
CREATE OR REPLACE FUNCTION server.database_files(p_database oid) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*) FROM pg_ls_dir('base/' || p_database, true, false)
$$;

REVOKE ALL ON FUNCTION server.end_autovacuum(integer, timestamptz, boolean), server.exported_snapshots(),
    server.database_files(oid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION server.end_autovacuum(integer, timestamptz, boolean), server.exported_snapshots(),
    server.database_files(oid) TO pgherd_agent;
