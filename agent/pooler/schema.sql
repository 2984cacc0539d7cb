-- The pooler's view of who may log in where. Run in the maintenance database by a superuser; may be run again.
--
-- PgBouncer logs in as pgherd_pooler and may do one thing: call pooler.login_secret. The function runs as
-- pgherd_secret_reader, which nobody can log in as and which reads five columns of pg_authid, in this database only
-- (privileges on a shared catalog are kept per database).

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'pgherd_secret_reader') THEN
        CREATE ROLE pgherd_secret_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'pgherd_pooler') THEN
        CREATE ROLE pgherd_pooler LOGIN;
    END IF;
END
$$;

ALTER ROLE pgherd_secret_reader NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE pgherd_pooler LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE pgherd_pooler SET search_path = pg_catalog, pg_temp;
ALTER ROLE pgherd_pooler SET default_transaction_read_only = on;

CREATE SCHEMA IF NOT EXISTS pooler;
REVOKE ALL ON SCHEMA pooler FROM PUBLIC;

-- One row for each customer login that the platform made. A login whose row is closed, or gone, cannot pass the pooler.
CREATE TABLE IF NOT EXISTS pooler.gate (
    login    text    PRIMARY KEY,
    database text    NOT NULL,
    open     boolean NOT NULL
);
CREATE INDEX IF NOT EXISTS gate_database ON pooler.gate (database);
REVOKE ALL ON pooler.gate FROM PUBLIC;

-- Databases that the service keeps customers out of, whatever their gates say: those of logins that come later too. Stopping and
-- starting, rotations and new roles open and close gates; none of them touches this.
CREATE TABLE IF NOT EXISTS pooler.shut (
    database text PRIMARY KEY
);
REVOKE ALL ON pooler.shut FROM PUBLIC;

-- Databases of which nobody passes the pooler for a time, because they take too much of what all databases share.
CREATE TABLE IF NOT EXISTS pooler.resting (
    database text        PRIMARY KEY,
    until    timestamptz NOT NULL
);
REVOKE ALL ON pooler.resting FROM PUBLIC;

-- Databases that other servers have, to which who still comes here is sent on: the socket that leads there, the server's address
-- and the certificates that sign its own, the cap and the networks as for a database that is here, and when that ends by itself.
CREATE TABLE IF NOT EXISTS pooler.forward (
    database       text        PRIMARY KEY,
    database_id    text        NOT NULL UNIQUE,
    socket         integer     NOT NULL UNIQUE CHECK (socket BETWEEN 1 AND 65535),
    host           text        NOT NULL,
    port           integer     NOT NULL,
    ca             text        NOT NULL,
    connection_cap integer     NOT NULL CHECK (connection_cap >= 0),
    networks       cidr[]      NOT NULL,
    until          timestamptz NOT NULL
);
REVOKE ALL ON pooler.forward FROM PUBLIC;

-- Their logins. The verifier is the one that the login has at the other server: with it PgBouncer both admits a client and logs in
-- there. Null: nobody is admitted, and those who are there are to be ended.
CREATE TABLE IF NOT EXISTS pooler.forwarded (
    login    text PRIMARY KEY,
    database text NOT NULL REFERENCES pooler.forward ON DELETE CASCADE,
    verifier text
);
CREATE INDEX IF NOT EXISTS forwarded_database ON pooler.forwarded (database);
REVOKE ALL ON pooler.forwarded FROM PUBLIC;

-- The logins that had a row, and when it went. Until PgBouncer has read files without such a login, it lets the login come to the
-- question for its password.
CREATE TABLE IF NOT EXISTS pooler.former (
    login text        PRIMARY KEY,
    gone  timestamptz NOT NULL
);
REVOKE ALL ON pooler.former FROM PUBLIC;

CREATE OR REPLACE FUNCTION pooler.remember_former() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pooler.former (login, gone) VALUES (old.login, pg_catalog.now())
        ON CONFLICT (login) DO UPDATE SET gone = excluded.gone;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION pooler.remember_former() FROM PUBLIC;
CREATE OR REPLACE TRIGGER remember_former AFTER DELETE ON pooler.gate
    FOR EACH ROW EXECUTE FUNCTION pooler.remember_former();
CREATE OR REPLACE TRIGGER remember_former AFTER DELETE ON pooler.forwarded
    FOR EACH ROW EXECUTE FUNCTION pooler.remember_former();

-- A verifier that no password has: nobody knows what has a SHA-256 sum of zeros.
CREATE OR REPLACE FUNCTION pooler.no_verifier() RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$' ||
           'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
$$;
REVOKE ALL ON FUNCTION pooler.no_verifier() FROM PUBLIC;

-- A login can give itself a verifier with a salt of any length, and whoever names it at the pooler, without a password, has it
-- read. PgBouncer takes none above 2,048 bytes, and a message above its limit costs the connection by which it asks for all
-- logins. The length is asked for without unpacking the text.
CREATE OR REPLACE FUNCTION pooler.is_short(verifier text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT pg_catalog.octet_length(verifier) <= 1024
$$;
REVOKE ALL ON FUNCTION pooler.is_short(text) FROM PUBLIC;

-- SECURITY DEFINER with a pinned search_path, and every name qualified: a caller's objects are never found first. An old
-- md5 password is no verifier here, because whoever reads it can log in with it.
--
-- A login that the platform made is always given a row, also a removed one, where it may not log in one that no password fits.
-- Tried: without a row PgBouncer goes on with what it knows of the login, an account with an empty password, and lets in whoever
-- sends that, as far as it has server connections, or until it has: who comes in as a removed login is still there when the name
-- is made again. A null it takes for the password "md5". From 1.26 on it also keeps that account with the pool, and the login can
-- never again log in to PostgreSQL for it. Nobody else is given a row, since PgBouncer never forgets a name.
CREATE OR REPLACE FUNCTION pooler.login_secret(wanted_login text, wanted_database text, OUT login text, OUT secret text)
    RETURNS SETOF record
    LANGUAGE sql STABLE STRICT SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT made.login, coalesce(a.rolpassword, s.verifier, pooler.no_verifier())
      FROM (SELECT f.login FROM pooler.former f UNION SELECT g.login FROM pooler.gate g
            UNION SELECT s.login FROM pooler.forwarded s) made
      LEFT JOIN pooler.gate g ON g.login = made.login
       AND g.database = wanted_database
       AND g.open
       AND NOT EXISTS (SELECT FROM pooler.shut s WHERE s.database = g.database)
       AND NOT EXISTS (SELECT FROM pooler.resting t WHERE t.database = g.database AND t.until > pg_catalog.statement_timestamp())
      LEFT JOIN pg_catalog.pg_authid a ON a.rolname = g.login::name
       AND a.rolcanlogin
       AND NOT a.rolsuper
       AND (a.rolvaliduntil IS NULL OR a.rolvaliduntil > pg_catalog.statement_timestamp())
       AND CASE WHEN pooler.is_short(a.rolpassword) THEN a.rolpassword LIKE 'SCRAM-SHA-256$%' ELSE false END
      LEFT JOIN (pooler.forwarded s JOIN pooler.forward w ON w.database = s.database
            AND w.until > pg_catalog.statement_timestamp())
        ON s.login = made.login AND s.database = wanted_database
     WHERE made.login = wanted_login
$$;
ALTER FUNCTION pooler.login_secret(text, text) OWNER TO pgherd_secret_reader;
REVOKE ALL ON FUNCTION pooler.login_secret(text, text) FROM PUBLIC;

-- Says whether a customer login has the password that a verifier is of; null asks whether it has none. The agent, which
-- cannot read passwords, proves with it what stands; the verifier itself is never given.
CREATE OR REPLACE FUNCTION pooler.has_verifier(wanted_login text, wanted_verifier text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pooler.gate g
          JOIN pg_catalog.pg_authid a ON a.rolname = g.login::name
         WHERE g.login = wanted_login
           AND NOT a.rolsuper
           AND a.rolpassword IS NOT DISTINCT FROM wanted_verifier)
$$;
ALTER FUNCTION pooler.has_verifier(text, text) OWNER TO pgherd_secret_reader;
REVOKE ALL ON FUNCTION pooler.has_verifier(text, text) FROM PUBLIC;

-- Tells one stored verifier of a customer login from another without giving it: a SHA-256 sum, from which the random salt in it
-- keeps everybody from finding the password. Null: the login has none. One that is too long is none of ours, and not told from
-- another such one.
CREATE OR REPLACE FUNCTION pooler.verifier_mark(wanted_login text) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN pooler.is_short(a.rolpassword)
             THEN pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(a.rolpassword, 'UTF8')), 'hex')
             WHEN a.rolpassword IS NOT NULL THEN 'too long' END
      FROM pooler.gate g
      JOIN pg_catalog.pg_authid a ON a.rolname = g.login::name
     WHERE g.login = wanted_login
       AND NOT a.rolsuper
$$;
ALTER FUNCTION pooler.verifier_mark(text) OWNER TO pgherd_secret_reader;
REVOKE ALL ON FUNCTION pooler.verifier_mark(text) FROM PUBLIC;

GRANT USAGE ON SCHEMA pooler TO pgherd_secret_reader, pgherd_pooler, pgherd_agent;
GRANT SELECT (rolname, rolpassword, rolcanlogin, rolsuper, rolvaliduntil) ON pg_catalog.pg_authid TO pgherd_secret_reader;
GRANT SELECT ON pooler.gate, pooler.shut, pooler.resting, pooler.former, pooler.forward, pooler.forwarded
    TO pgherd_secret_reader;
GRANT EXECUTE ON FUNCTION pooler.no_verifier() TO pgherd_secret_reader, pgherd_agent;
GRANT EXECUTE ON FUNCTION pooler.is_short(text) TO pgherd_secret_reader;
GRANT EXECUTE ON FUNCTION pooler.login_secret(text, text) TO pgherd_pooler;
GRANT EXECUTE ON FUNCTION pooler.has_verifier(text, text) TO pgherd_agent;
GRANT EXECUTE ON FUNCTION pooler.verifier_mark(text) TO pgherd_agent;
GRANT SELECT, INSERT, UPDATE, DELETE ON pooler.gate, pooler.shut, pooler.resting, pooler.former, pooler.forward, pooler.forwarded
    TO pgherd_agent;

DO $$
BEGIN
    EXECUTE pg_catalog.format('GRANT CONNECT ON DATABASE %I TO pgherd_pooler', pg_catalog.current_database());
END
$$;
