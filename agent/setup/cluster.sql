-- What an administrator does once for a server, in the maintenance database; may be run again, and then repairs.

ALTER ROLE pgherd_agent LOGIN NOSUPERUSER CREATEDB CREATEROLE REPLICATION BYPASSRLS INHERIT CONNECTION LIMIT -1;
GRANT pg_signal_backend, pg_monitor TO pgherd_agent;

-- A database that moves to another server is followed there. REPLICATION is for the source, and for the logins that it makes.
GRANT pg_create_subscription TO pgherd_agent;

-- These it passes on to the logins that it makes for single dumps.
GRANT pg_read_all_data, pg_use_reserved_connections TO pgherd_agent WITH ADMIN OPTION;

-- The copies that verify backups build whole indexes: it lifts the limit for the login of each, and bounds their files itself.
GRANT SET ON PARAMETER temp_file_limit TO pgherd_agent;

-- What a role has set for itself in a database, it sets again in the one that takes its place: also what only an extension's
-- library knows, which its own sessions have not loaded.
GRANT SET ON PARAMETER pg_trgm.similarity_threshold, pg_trgm.word_similarity_threshold, pg_trgm.strict_word_similarity_threshold
    TO pgherd_agent;

-- What it creates it may also act as: that is how grants on customers' things get the right grantor.
ALTER ROLE pgherd_agent SET createrole_self_grant = 'set, inherit';

-- Nothing of a customer's is found by name or run by accident, and no default of a customer's database reaches its sessions.
ALTER ROLE pgherd_agent SET search_path = pg_catalog, pg_temp;
ALTER ROLE pgherd_agent SET restrict_nonsystem_relation_kind = 'view, foreign-table';
ALTER ROLE pgherd_agent SET statement_timeout = 0;
ALTER ROLE pgherd_agent SET lock_timeout = 0;
ALTER ROLE pgherd_agent SET idle_in_transaction_session_timeout = 0;
ALTER ROLE pgherd_agent SET idle_session_timeout = 0;
ALTER ROLE pgherd_agent SET default_transaction_read_only = off;
DO $$
BEGIN
    IF current_setting('server_version_num')::int >= 170000 THEN
        ALTER ROLE pgherd_agent SET transaction_timeout = 0;
        ALTER ROLE pgherd_agent SET event_triggers = off; -- also those of its log-in, of whatever a superuser made in a database
    END IF;
END
$$;

-- Its statements hold verifiers, which do not belong into the server's log.
ALTER ROLE pgherd_agent SET log_statement = 'none';
ALTER ROLE pgherd_agent SET log_min_error_statement = 'panic';
ALTER ROLE pgherd_agent SET log_min_duration_statement = -1;
ALTER ROLE pgherd_agent SET log_min_duration_sample = -1;
ALTER ROLE pgherd_agent SET log_transaction_sample_rate = 0;
