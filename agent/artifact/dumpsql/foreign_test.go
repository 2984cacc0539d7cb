package dumpsql_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
)

var foreign = dumpsql.Foreign{Owner: "shop-db", Extension: func(name string) bool { return name == "citext" || name == `"uuid-ossp"` }}

// harmless are statements that pg_dump writes without owners and privileges.
var harmless = []string{
	`SET statement_timeout = 0;`, `SET client_encoding = 'UTF8';`, `SET transaction_timeout = 0;`, `SET lc_monetary = 'C';`,
	`SELECT pg_catalog.set_config('search_path', '', false);`, `SELECT pg_catalog.setval('public."A;""b"', -5, true);`,
	`SELECT pg_catalog.setval(E'public."\\x"', 1, false);`,
	`SELECT pg_catalog.lo_create('16401');`, `SELECT pg_catalog.lo_open('16401', 131072);`,
	`SELECT pg_catalog.lowrite(0, '\x00ff');`, `SELECT pg_catalog.lo_close(0);`, `BEGIN;`, `COMMIT;`,
	`CREATE SCHEMA shop;`, `CREATE SCHEMA IF NOT EXISTS public;`, `CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;`,
	`CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA "a b";`, `CREATE EXTENSION citext;`,
	`CREATE TABLE public.t (owner text, "to" int DEFAULT 1);`, `CREATE UNLOGGED TABLE public.t (a int);`,
	`CREATE MATERIALIZED VIEW public.m AS SELECT 1 AS a WITH NO DATA;`, `CREATE OR REPLACE VIEW public.v AS SELECT 1 AS a;`,
	`CREATE UNIQUE INDEX i ON public.t USING btree (a);`, `CREATE CONSTRAINT TRIGGER c AFTER INSERT ON public.t EXECUTE FUNCTION f();`,
	`CREATE FUNCTION public.f() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $_$ BEGIN DROP ROLE x; END $_$;`,
	`CREATE DEFAULT CONVERSION public.c FOR 'UTF8' TO 'LATIN1' FROM utf8_to_iso8859_1;`, `CREATE PUBLICATION p WITH (publish = 'insert');`,
	`CREATE TEXT SEARCH CONFIGURATION public.c (PARSER = pg_catalog."default");`, `CREATE OPERATOR FAMILY public.o USING hash;`,
	`CREATE POLICY p ON public.t USING ((a = 1));`, `CREATE POLICY p ON public."to" FOR SELECT TO PUBLIC USING (true);`,
	`CREATE POLICY p ON public.t AS RESTRICTIVE FOR ALL TO "shop-db" WITH CHECK ((a > 1));`,
	`ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (owner);`, `ALTER TABLE public.t ALTER COLUMN owner SET STATISTICS 5;`,
	`ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;`, `ALTER INDEX public.i ATTACH PARTITION public.j;`,
	`ALTER SEQUENCE public.s OWNED BY public.t.a;`, `ALTER PUBLICATION p ADD TABLE ONLY public.t WHERE ((owner > 1));`,
	`ALTER TABLE IF EXISTS ONLY public.t DROP CONSTRAINT t_pkey;`, `DROP TABLE IF EXISTS public.t;`, `DROP SCHEMA IF EXISTS public;`,
	`COMMENT ON TABLE public.t IS 'x';`, `COMMENT ON COLUMN public.t.a IS 'x';`, `COMMENT ON LARGE OBJECT 16401 IS 'x';`,
	`COPY public.t (a, "from") FROM stdin;`, `COPY "A b".from_t FROM stdin;`, `COPY public.t FROM STDIN WITH (FORMAT csv);`,
	`SELECT pg_catalog.lo_unlink(oid) FROM pg_catalog.pg_largeobject_metadata WHERE oid = '16401';`,
	`INSERT INTO public.t VALUES (1);`, `REFRESH MATERIALIZED VIEW public.m;`, "-- of a kind\n/* and */ set client_encoding to utf8;",
}

// strange are others, with a part of what is said of them.
var strange = map[string]string{
	`;`: "no such statement", `SELECT 1;`: "", `SELECT pg_catalog.pg_read_file('/etc/passwd');`: "", `VALUES (1);`: "", `TABLE t;`: "",
	`SELECT pg_catalog.setval('s', (SELECT pg_sleep(1)));`: "", `SELECT pg_catalog.setval('s', 1, true) FROM t;`: "",
	`SELECT pg_catalog.setval('s', 1, true), f();`: "", `SELECT lo_create('1');`: "", `SELECT pg_catalog.lo_export(1, '/tmp/x');`: "",
	`SELECT pg_catalog.set_config('role', 'x', false);`: "", `SELECT pg_catalog.set_config(f(), '', false);`: "",
	`SELECT * FROM pg_catalog.pg_restore_relation_stats('version', 180000);`: "",
	`SET ROLE x;`: "", `SET SESSION AUTHORIZATION x;`: "", `SET SESSION AUTHORIZATION DEFAULT;`: "", `SET LOCAL search_path = x;`: "",
	`SET role = x;`: "", `SET application_name = 'x';`: "", `SET session_replication_role = replica;`: "", `RESET ALL;`: "",
	`CREATE ROLE x;`: "", `CREATE USER x;`: "", `CREATE DATABASE x;`: "", `CREATE TABLESPACE x LOCATION '/';`: "",
	`CREATE EVENT TRIGGER x ON ddl_command_end EXECUTE FUNCTION f();`: "", `CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p;`: "",
	`CREATE SERVER s FOREIGN DATA WRAPPER w;`: "", `CREATE FOREIGN DATA WRAPPER w;`: "", `CREATE FOREIGN TABLE t () SERVER s;`: "",
	`CREATE USER MAPPING FOR x SERVER s;`: "", `CREATE LANGUAGE c;`: "", `CREATE ACCESS METHOD m TYPE TABLE HANDLER h;`: "",
	`CREATE TEMPORARY TABLE t ();`: "", `CREATE TRANSFORM FOR int LANGUAGE sql (FROM SQL WITH FUNCTION f(internal));`: "",
	`CREATE TEXT SEARCH TEMPLATE t (LEXIZE = f);`: "", `CREATE SCHEMA s AUTHORIZATION x;`: "", `CREATE SCHEMA AUTHORIZATION x;`: "",
	`CREATE SCHEMA s CREATE TABLE t (a int) GRANT ALL ON t TO x;`: "", `CREATE SCHEMA IF NOT EXISTS s AUTHORIZATION x;`: "",
	`CREATE EXTENSION dblink;`: "no trusted extension dblink", `CREATE EXTENSION citext VERSION '1.0';`: "",
	`CREATE EXTENSION citext CASCADE;`: "", `CREATE EXTENSION IF NOT EXISTS CITEXT WITH SCHEMA s VERSION '1' CASCADE;`: "",
	`CREATE EXTENSION "Citext";`:                      "no trusted extension",
	`CREATE POLICY p ON t TO "Shop-DB" USING (true);`: "which this database does not have",
	`CREATE POLICY p ON t TO CURRENT_USER;`:           "CURRENT_USER",
	`CREATE POLICY p ON t TO PUBLIC, x USING (true);`: "the role x",
	`CREATE POLICY "to" ON t TO "public";`:            `the role "public"`,
	`ALTER ROLE CURRENT_USER PASSWORD 'x';`:           "", `ALTER USER x SUPERUSER;`: "", `ALTER SYSTEM SET work_mem = 1;`: "",
	`ALTER DATABASE x SET work_mem = 1;`: "", `ALTER EXTENSION citext UPDATE;`: "", `ALTER POLICY p ON t TO x;`: "",
	`ALTER TABLE t OWNER TO x;`: "--no-owner", `alter table t owner /* */ to x;`: "--no-owner", `ALTER LARGE OBJECT 1 OWNER TO x;`: "--no-owner",
	`ALTER DEFAULT PRIVILEGES FOR ROLE x GRANT ALL ON TABLES TO y;`: "--no-privileges", `GRANT ALL ON t TO x;`: "--no-privileges",
	`REVOKE ALL ON t FROM x;`: "--no-privileges", `SECURITY LABEL FOR x ON TABLE t IS 'y';`: "", `REASSIGN OWNED BY x TO y;`: "",
	`DROP OWNED BY x;`: "", `DROP ROLE x;`: "", `DROP DATABASE x;`: "", `DROP EVENT TRIGGER x;`: "", `COMMENT ON ROLE x IS 'y';`: "",
	`COMMENT ON DATABASE x IS 'y';`: "", `COPY t FROM PROGRAM 'id';`: "", `COPY t FROM '/etc/passwd';`: "", `COPY t TO stdout;`: "",
	`COPY t FROM PROGRAM 'id' WHERE a IS DISTINCT FROM stdin;`: "", `COPY (SELECT 1) TO PROGRAM 'id';`: "", `COPY "t" FROM "stdin";`: "",
	`DO $$ BEGIN END $$;`: "", `CALL p();`: "", `LOAD 'x';`: "", `LISTEN x;`: "", `NOTIFY x;`: "", `PREPARE TRANSACTION 'x';`: "",
	`COMMIT PREPARED 'x';`: "", `BEGIN ISOLATION LEVEL SERIALIZABLE;`: "", `ROLLBACK;`: "", `SAVEPOINT x;`: "", `LOCK t;`: "",
	`VACUUM;`: "", `ANALYZE;`: "", `CLUSTER;`: "", `REINDEX TABLE t;`: "", `CHECKPOINT;`: "", `DECLARE c CURSOR FOR SELECT 1;`: "",
	`EXECUTE x;`: "", `PREPARE x AS SELECT 1;`: "", `WITH x AS (SELECT 1) SELECT 1;`: "", `UPDATE t SET a = 1;`: "", `DELETE FROM t;`: "",
	`MERGE INTO t USING t s ON true WHEN MATCHED THEN DELETE;`: "", `TRUNCATE t;`: "", `EXPLAIN ANALYZE SELECT 1;`: "", `DISCARD ALL;`: "",
	`IMPORT FOREIGN SCHEMA s FROM SERVER t INTO u;`: "", `"set" client_encoding = 1;`: "", `(SELECT 1);`: "",
}

func TestForeign(t *testing.T) {
	for _, sql := range harmless {
		if why := foreign.Refuse([]byte(sql)); why != "" {
			t.Errorf("%s: %s", sql, why)
		}
	}
	for sql, want := range strange {
		if why := foreign.Refuse([]byte(sql)); why == "" || !strings.Contains(why, want) {
			t.Errorf("%s: %q", sql, why)
		}
	}
}

// What is let through begins as pg_dump's statements do, whatever stands before it.
func FuzzForeign(f *testing.F) {
	for _, sql := range harmless {
		f.Add([]byte(sql))
	}
	for sql := range strange {
		f.Add([]byte(sql))
	}
	begins := []string{
		"set", "select", "create", "alter", "drop", "comment", "insert", "refresh", "begin", "commit", "copy",
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := dumpsql.NewReader(bytes.NewReader(text), dumpsql.Limits{Statement: 1 << 16})
		for {
			item, err := r.Next()
			if err != nil {
				return
			}
			if item.Kind != dumpsql.Statement && item.Kind != dumpsql.CopyStart {
				continue
			}
			sql := string(item.SQL())
			why := foreign.Refuse([]byte(sql))
			if again := foreign.Refuse([]byte("/* DO */ -- GRANT\n" + sql)); again != why {
				t.Errorf("%q: %q, and after a comment: %q", sql, why, again)
			}
			for _, word := range dumpsql.Tokens([]byte(sql)) {
				if why == "" && !slices.Contains(begins, strings.ToLower(word)) {
					t.Errorf("%q is let through", sql)
				}
				break
			}
		}
	})
}
