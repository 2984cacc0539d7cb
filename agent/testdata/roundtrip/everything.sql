-- What logins of a customer can make, with the clauses that the other scripts (rich.sql of the backups, world.sql of the sidecar)
-- do not have. Operator classes and families, base types, access methods, parsers and templates of text search, transforms, foreign
-- data, event triggers and publications of a whole schema are for superusers only: no customer's database has them.
-- The roles are :"owner", :"runtime", :"readonly", and :"first" and :"second", which are additional ones.
SET SESSION AUTHORIZATION :"owner";
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE EXTENSION IF NOT EXISTS intarray;
CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS seg;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION IF NOT EXISTS fuzzystrmatch;
CREATE EXTENSION IF NOT EXISTS tablefunc;
CREATE EXTENSION IF NOT EXISTS isn;
CREATE EXTENSION IF NOT EXISTS lo;
CREATE EXTENSION IF NOT EXISTS tcn;
CREATE EXTENSION IF NOT EXISTS tsm_system_rows;
CREATE SCHEMA everything;
CREATE SCHEMA "Ünïcode ""quoted"" schema";
CREATE SCHEMA ext;
CREATE EXTENSION dict_int WITH SCHEMA ext;
SET search_path = everything, public;
COMMENT ON SCHEMA everything IS E'of\nall \\ kinds''';

-- Types.
CREATE TYPE color AS ENUM ('red', 'blue');
ALTER TYPE color ADD VALUE 'green' BEFORE 'blue';
ALTER TYPE color ADD VALUE '';
ALTER TYPE color RENAME VALUE 'red' TO 'it''s red';
CREATE COLLATION numeric_order (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION with_rules (provider = icu, locale = 'und', rules = '& a < g');
CREATE COLLATION posix FROM "C";
CREATE TYPE address AS (street text COLLATE numeric_order, "zip code" varchar(10), at point);
ALTER TYPE address ADD ATTRIBUTE country char(2), DROP ATTRIBUTE at;
COMMENT ON COLUMN address."zip code" IS 'zip';
CREATE TYPE nested AS (home address, others address[], colors color[]);
CREATE DOMAIN base_domain AS text COLLATE "C" DEFAULT 'x' NOT NULL CONSTRAINT filled CHECK (VALUE <> '') CHECK (length(VALUE) < 100);
CREATE DOMAIN derived_domain AS base_domain CHECK (VALUE !~ '^\s');
CREATE DOMAIN later_domain AS numeric(10, 2);
ALTER DOMAIN later_domain ADD CONSTRAINT not_negative CHECK (VALUE >= 0) NOT VALID;
COMMENT ON CONSTRAINT filled ON DOMAIN base_domain IS 'filled';
CREATE DOMAIN list_domain AS int[] CHECK (array_length(VALUE, 1) < 5);
CREATE TYPE text_range AS RANGE (subtype = text, collation = "C", subtype_opclass = text_pattern_ops, multirange_type_name = many_texts);
CREATE FUNCTION time_diff(a time, b time) RETURNS float8 LANGUAGE sql STRICT IMMUTABLE AS 'SELECT EXTRACT(EPOCH FROM (a - b))';
CREATE TYPE time_range AS RANGE (subtype = time, subtype_diff = time_diff);
CREATE DOMAIN range_domain AS time_range CHECK (NOT isempty(VALUE));
COMMENT ON TYPE color IS 'color'; COMMENT ON DOMAIN derived_domain IS 'derived'; COMMENT ON TYPE text_range IS 'range';

-- Functions: those that others build on, and all attributes.
CREATE FUNCTION is_even(n int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 7 RETURN n % 2 = 0;
CREATE FUNCTION series(VARIADIC list int[]) RETURNS SETOF int LANGUAGE sql STABLE ROWS 7 PARALLEL RESTRICTED AS 'SELECT unnest(list)';
CREATE FUNCTION outs(INOUT a int, OUT b text, c text DEFAULT 'it''s', d color DEFAULT 'blue') LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = everything, "Ünïcode ""quoted"" schema" SET work_mem = '7MB' SET DateStyle FROM CURRENT
  AS $fn$ BEGIN b := $$x$$ || c; END $fn$;
CREATE FUNCTION "select"("from" int, "Where" nested) RETURNS TABLE ("order" int, "Group" color) LANGUAGE sql
  AS $$ SELECT 1, 'blue'::everything.color $$;
CREATE FUNCTION anything(anyelement, anyarray, anycompatible) RETURNS anyelement LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION body() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 ELSE 3 END; END;
CREATE PROCEDURE "do;it"(IN a int, INOUT b int, OUT c text, VARIADIC d text[] DEFAULT '{}') LANGUAGE plpgsql
  AS $$ BEGIN c := a; COMMIT; END $$;
CREATE PROCEDURE body_of_procedure(a int) LANGUAGE sql BEGIN ATOMIC SELECT is_even(a); END;
CREATE FUNCTION set_of_records(text) RETURNS SETOF record LANGUAGE sql AS 'SELECT 1, 2';
COMMENT ON FUNCTION series IS 'series'; COMMENT ON PROCEDURE "do;it" IS 'procedure';
COMMENT ON FUNCTION "select"(int, nested) IS 'select';

-- Aggregates, operators, casts, conversions.
CREATE FUNCTION concat_state(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT coalesce($1, '''') || coalesce($2, '''')';
CREATE AGGREGATE moving(int) (SFUNC = int4pl, STYPE = int, SSPACE = 16, INITCOND = '0', COMBINEFUNC = int4pl, PARALLEL = safe,
  MSFUNC = int4pl, MINVFUNC = int4mi, MSTYPE = int, MINITCOND = '0', MSSPACE = 8, FINALFUNC_MODIFY = read_only);
CREATE AGGREGATE biggest(int) (SFUNC = int4larger, STYPE = int, SORTOP = >);
CREATE AGGREGATE joined_texts(VARIADIC "list" text[]) (SFUNC = array_cat, STYPE = text[], INITCOND = '{}');
CREATE FUNCTION keep_first(int[], int, int) RETURNS int[] LANGUAGE sql IMMUTABLE AS 'SELECT $1 || $2';
CREATE FUNCTION final_of(int[], int, int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT count(*) FROM unnest($1)';
CREATE AGGREGATE hypothetical(int ORDER BY int, int) (SFUNC = keep_first, STYPE = int[], INITCOND = '{}');
COMMENT ON AGGREGATE moving(int) IS 'moving'; COMMENT ON AGGREGATE hypothetical(int ORDER BY int, int) IS 'hypothetical';
CREATE FUNCTION same_address(address, address) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1.street = $2.street';
CREATE FUNCTION other_address(address, address) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1.street <> $2.street';
CREATE OPERATOR <=#> (LEFTARG = address, RIGHTARG = address, FUNCTION = same_address, COMMUTATOR = <=#>, NEGATOR = <!#>,
  RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <!#> (LEFTARG = address, RIGHTARG = address, FUNCTION = other_address, COMMUTATOR = <!#>, NEGATOR = <=#>,
  RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR "Ünïcode ""quoted"" schema".@#@ (RIGHTARG = int, FUNCTION = is_even);
COMMENT ON OPERATOR <=#> (address, address) IS 'operator';
CREATE FUNCTION color_of(int) RETURNS color LANGUAGE sql IMMUTABLE AS $$ SELECT 'blue'::everything.color $$;
CREATE CAST (int AS color) WITH FUNCTION color_of(int) AS IMPLICIT;
CREATE CAST (address AS nested) WITH INOUT AS ASSIGNMENT;
COMMENT ON CAST (int AS color) IS 'cast';
CREATE DEFAULT CONVERSION latin FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8;
COMMENT ON CONVERSION latin IS 'conversion';

-- Text search.
CREATE TEXT SEARCH DICTIONARY stem (TEMPLATE = snowball, language = 'german', stopwords = german);
CREATE TEXT SEARCH DICTIONARY plain (TEMPLATE = simple, accept = false);
CREATE TEXT SEARCH CONFIGURATION words (PARSER = "default");
ALTER TEXT SEARCH CONFIGURATION words ADD MAPPING FOR asciiword, word WITH plain, stem;
ALTER TEXT SEARCH CONFIGURATION words ADD MAPPING FOR "int" WITH simple;
COMMENT ON TEXT SEARCH DICTIONARY stem IS 'stem'; COMMENT ON TEXT SEARCH CONFIGURATION words IS 'words';

-- Tables and constraints.
CREATE SEQUENCE numbers AS smallint INCREMENT BY -3 MINVALUE -100 MAXVALUE 50 START 11 CACHE 5 CYCLE;
CREATE UNLOGGED SEQUENCE unlogged_numbers;
SELECT nextval('numbers'), nextval('unlogged_numbers');
CREATE TABLE parent (
  id int GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 10 CYCLE) PRIMARY KEY, by_default bigint GENERATED BY DEFAULT AS IDENTITY,
  serial smallserial, color color DEFAULT 'green', home address, nested nested, domain derived_domain DEFAULT 'd', many many_texts,
  amount later_domain, made timestamptz(3) DEFAULT now(), took interval day to second(2), price money, mac macaddr8, bits bit varying(5),
  doc jsonb DEFAULT '{"a": [1, "it''s"]}', doc2 json, doc3 xml, search tsvector GENERATED ALWAYS AS (to_tsvector('simple', doc::text)) STORED,
  found tsquery, lsn pg_lsn, net cidr, figure polygon, kind "char", name name, words text[][] DEFAULT '{{a,b},{c,NULL}}',
  folded text COLLATE ignore_case, dropped int, twice int GENERATED ALWAYS AS (serial * 2) STORED,
  CONSTRAINT "check ""quoted""; --" CHECK (amount > 0 OR color IN ('blue', 'green')) NO INHERIT,
  CONSTRAINT together UNIQUE NULLS NOT DISTINCT (color, serial) INCLUDE (price) WITH (fillfactor = 70) DEFERRABLE INITIALLY DEFERRED
) WITH (fillfactor = 80, autovacuum_enabled = false, toast.autovacuum_vacuum_scale_factor = 0.3, parallel_workers = 2,
  vacuum_truncate = false, log_autovacuum_min_duration = 100, toast_tuple_target = 256);
ALTER TABLE parent DROP COLUMN dropped;
ALTER TABLE parent ADD COLUMN added int NOT NULL DEFAULT 7;
ALTER TABLE parent ALTER COLUMN doc SET STORAGE EXTERNAL, ALTER COLUMN doc SET COMPRESSION pglz, ALTER COLUMN domain SET STATISTICS 500,
  ALTER COLUMN serial SET (n_distinct = -0.5, n_distinct_inherited = 3), ALTER COLUMN words SET STORAGE MAIN;
ALTER TABLE parent ADD CONSTRAINT later CHECK (added <> 8) NOT VALID;
COMMENT ON COLUMN parent.doc IS E'a\ttab'; COMMENT ON CONSTRAINT together ON parent IS 'constraint';
INSERT INTO parent (color, home, nested, many, amount, took, price, mac, bits, doc2, doc3, found, lsn, net, figure, kind, name, folded)
  SELECT CASE n % 2 WHEN 0 THEN 'blue' ELSE '' END::color, ROW('street ' || n, E'z\n', NULL)::address,
    ROW(ROW(NULL, '"', 'DE'), ARRAY[ROW('a,b', '\', NULL)::address], '{green,""}')::nested, many_texts(text_range('a', 'b'), text_range('c', NULL)),
    n + 0.25, make_interval(days => n, secs => 1.5), n * 1000.5, '08:00:2b:01:02:03:04:05', B'101'::bit varying(5), '{"b":  1 }', '<a>&amp;</a>',
    'fat & (cat | !rat)', '16/B374D848', '10.0.0.0/8', '((0,0),(1,1.5),(2,0))', 'x', 'n' || n, 'Fold ' || n
  FROM generate_series(1, 50) n;
CREATE TABLE child (
  own int REFERENCES parent ON UPDATE CASCADE ON DELETE SET NULL, a int, b int, self int UNIQUE REFERENCES child (self) DEFERRABLE,
  during tstzrange, room int,
  UNIQUE (room, self),
  CONSTRAINT no_overlap EXCLUDE USING gist (room WITH =, during WITH &&) WITH (fillfactor = 60) WHERE (room > 0) DEFERRABLE
);
ALTER TABLE child ADD CONSTRAINT to_itself FOREIGN KEY (a, b) REFERENCES child (room, self) MATCH FULL
  ON DELETE SET DEFAULT DEFERRABLE INITIALLY DEFERRED;
INSERT INTO child SELECT 90 + n * 10, n, n, n, tstzrange('2026-01-01'::timestamptz + n * interval '1 h', '2026-01-01'::timestamptz + n * interval '1 h 1 s'), n
  FROM generate_series(1, 40) n;
ALTER TABLE child ADD CONSTRAINT not_yet FOREIGN KEY (room) REFERENCES parent NOT VALID;
CREATE TABLE left_side (id int PRIMARY KEY, "right" int);
CREATE TABLE right_side (id int PRIMARY KEY, "left" int REFERENCES left_side ON DELETE SET NULL ("left"));
ALTER TABLE left_side ADD FOREIGN KEY ("right") REFERENCES right_side DEFERRABLE;
BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO left_side VALUES (1, 1), (2, 2); INSERT INTO right_side VALUES (2, 1), (1, 2); COMMIT;
CREATE TABLE typed OF address (street WITH OPTIONS DEFAULT 'home' PRIMARY KEY, CHECK (country <> 'XX'));
INSERT INTO typed VALUES ('Unter den Linden', '10117', 'DE');
CREATE TABLE alike (LIKE parent INCLUDING ALL);
CREATE UNLOGGED TABLE unlogged (id serial, note text);
INSERT INTO unlogged (note) VALUES ('kept'), (NULL), (''), (E'\\.');
CREATE TABLE nothing_at_all ();
INSERT INTO nothing_at_all DEFAULT VALUES;
CREATE TABLE "Ünïcode ""quoted"" schema"."a very long name that goes on to the sixty-third byte of it, yes" ("all" int, "ä ""b""" text);
INSERT INTO "Ünïcode ""quoted"" schema"."a very long name that goes on to the sixty-third byte of it, yes" VALUES (1, E'\u0001\u007F\u2028😀');
CREATE TABLE replicated (id int NOT NULL, u int NOT NULL UNIQUE);
ALTER TABLE replicated REPLICA IDENTITY USING INDEX replicated_u_key;
ALTER TABLE child REPLICA IDENTITY FULL;
ALTER TABLE typed REPLICA IDENTITY NOTHING;

-- Inheritance and partitions.
CREATE TABLE grand (a int NOT NULL, b text DEFAULT 'grand', CHECK (a > 0));
CREATE TABLE uncle (c date, b text);
CREATE TABLE heir (d int, CHECK (d > 1)) INHERITS (grand, uncle);
ALTER TABLE heir ALTER COLUMN b SET DEFAULT 'heir', ADD CONSTRAINT only_here CHECK (d < 100) NO INHERIT;
ALTER TABLE heir ALTER COLUMN c SET NOT NULL;
CREATE TABLE second_heir () INHERITS (heir);
INSERT INTO grand VALUES (1); INSERT INTO heir (a, c, d) VALUES (2, '2026-01-01', 3); INSERT INTO second_heir (a, c, d) VALUES (3, 'infinity', 4);
CREATE TABLE by_hash (id int, note text, PRIMARY KEY (id)) PARTITION BY HASH (id);
CREATE TABLE by_hash_0 PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_hash_1 PARTITION OF by_hash FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE by_hash_3 PARTITION OF by_hash FOR VALUES WITH (MODULUS 4, REMAINDER 3) PARTITION BY RANGE (id);
CREATE TABLE by_hash_3_all PARTITION OF by_hash_3 DEFAULT;
INSERT INTO by_hash SELECT n, 'n' || n FROM generate_series(1, 100) n;
CREATE TABLE by_list (kind color, at date, amount int DEFAULT 5) PARTITION BY LIST (kind);
CREATE TABLE by_list_blue PARTITION OF by_list (amount DEFAULT 6, CONSTRAINT positive CHECK (amount > 0)) FOR VALUES IN ('blue', 'green');
CREATE TABLE by_list_null PARTITION OF by_list FOR VALUES IN (NULL);
CREATE TABLE by_list_rest (amount int, dropped int, kind color, at date);
ALTER TABLE by_list_rest DROP COLUMN dropped;
ALTER TABLE by_list ATTACH PARTITION by_list_rest DEFAULT;
INSERT INTO by_list VALUES ('blue', '2026-01-01', 5), (NULL, '-infinity', 6), ('', '2026-02-02', 9);
CREATE TABLE by_range (a int, b text COLLATE "C", c timestamptz, filler text) PARTITION BY RANGE (a, lower(b), c);
CREATE TABLE by_range_1 PARTITION OF by_range FOR VALUES FROM (MINVALUE, MINVALUE, MINVALUE) TO (10, 'm', '2026-01-01 00:00+00');
CREATE TABLE by_range_2 PARTITION OF by_range FOR VALUES FROM (10, 'm', '2026-01-01 00:00+00') TO (10, MAXVALUE, MAXVALUE) WITH (fillfactor = 50);
CREATE UNLOGGED TABLE by_range_3 PARTITION OF by_range DEFAULT;
INSERT INTO by_range SELECT n, chr(97 + n % 26), '2026-03-29 00:59+00'::timestamptz + n * interval '1 min', repeat('x', n) FROM generate_series(1, 30) n;
CREATE INDEX by_range_everywhere ON by_range (b DESC NULLS LAST) INCLUDE (a);
CREATE INDEX by_range_only ON ONLY by_range (a);
CREATE INDEX by_range_1_a ON by_range_1 (a);
ALTER INDEX by_range_only ATTACH PARTITION by_range_1_a;
ALTER TABLE by_list ADD FOREIGN KEY (amount) REFERENCES by_hash;
ALTER TABLE by_hash ADD COLUMN referring int REFERENCES by_hash;

-- Indexes and statistics.
CREATE INDEX parent_words ON parent USING gin (words) WITH (fastupdate = off, gin_pending_list_limit = 128);
CREATE INDEX parent_doc ON parent USING gin (doc jsonb_path_ops);
CREATE INDEX parent_name ON parent USING hash (name) WHERE color <> 'blue';
CREATE INDEX parent_made ON parent USING brin (made timestamptz_minmax_multi_ops (values_per_range = 16)) WITH (pages_per_range = 4, autosummarize);
CREATE INDEX parent_figure ON parent USING gist (figure) WITH (buffering = on);
CREATE INDEX parent_net ON parent USING spgist (net inet_ops);
CREATE UNIQUE INDEX parent_expression ON parent (((home).street) COLLATE "C" text_pattern_ops DESC, (added + id), (is_even(id)) NULLS FIRST) INCLUDE (made)
  NULLS NOT DISTINCT WITH (deduplicate_items = off) WHERE is_even(added) IS NOT NULL;
ALTER INDEX parent_expression ALTER COLUMN 2 SET STATISTICS 300;
COMMENT ON INDEX parent_expression IS 'index';
CREATE INDEX parent_trigrams ON parent USING gist ((name::text) gist_trgm_ops (siglen = 32));
ALTER TABLE parent CLUSTER ON parent_pkey;
CREATE STATISTICS counted (ndistinct, dependencies, mcv) ON color, added, serial FROM parent;
CREATE STATISTICS of_expressions ON (added % 3), (lower(folded)), color FROM parent;
CREATE STATISTICS "Ünïcode ""quoted"" schema".of_one ON (added * 2) FROM parent;
ALTER STATISTICS counted SET STATISTICS 77;
COMMENT ON STATISTICS counted IS 'statistics';

-- Views.
CREATE VIEW options WITH (security_barrier, security_invoker = true, check_option = cascaded) AS SELECT id, added, folded FROM parent WHERE added > 1;
CREATE VIEW local_check AS SELECT * FROM options WHERE id > 0 WITH LOCAL CHECK OPTION;
ALTER VIEW local_check ALTER COLUMN added SET DEFAULT 9;
CREATE RECURSIVE VIEW recursive_numbers (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM recursive_numbers WHERE n < 5;
CREATE VIEW grouped AS SELECT p.id, p.folded, p.added, count(*) AS n, string_agg(c.room::text, ', ' ORDER BY c.room DESC NULLS LAST) FILTER (WHERE c.a > 3) AS rooms
  FROM parent p LEFT JOIN child c ON c.own = p.id GROUP BY p.id;
CREATE VIEW windowed AS SELECT id, rank() OVER w, lag(added, 2, 0) OVER (PARTITION BY color ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)
  FROM parent WINDOW w AS (PARTITION BY color ORDER BY id RANGE UNBOUNDED PRECEDING);
CREATE VIEW all_sorts AS WITH cte AS MATERIALIZED (SELECT 1 AS one)
  SELECT x.two, t.n, t.s, (SELECT max(g.renamed) FROM ONLY grand g (renamed)) AS most, EXTRACT(EPOCH FROM now()) AS epoch, CAST('a' AS varchar(3)) AS cast_,
    CASE t.n WHEN 1 THEN 'one' ELSE NULL END AS word, t.n BETWEEN SYMMETRIC 3 AND 1 AS between_, t.s SIMILAR TO 'a|b' AS alike, t.s COLLATE "C" < 'b' AS less,
    (ARRAY[1, 2])[1:2] AS slice, GROUPING(t.n) AS grouping_, XMLELEMENT(name "a b", XMLATTRIBUTES(1 AS c)) AS element, OVERLAY('abc' PLACING 'x' FROM 2) AS over,
    JSON_OBJECT('a': 1 ABSENT ON NULL) AS object, t.n IS DISTINCT FROM NULL AS distinct_, current_user, '2026-01-01 00:00'::timestamp AT TIME ZONE 'Europe/Berlin' AS zoned
  FROM cte CROSS JOIN LATERAL (SELECT cte.one + 1 AS two) x LEFT JOIN LATERAL unnest(ARRAY[1, 2], ARRAY['a', 'b']) WITH ORDINALITY AS t (n, s, o) ON true
  GROUP BY GROUPING SETS ((x.two, t.n, t.s), ROLLUP (t.n, t.s), ()) HAVING count(*) > 0 ORDER BY 1 USING <, 2 DESC NULLS FIRST FETCH FIRST 3 ROWS WITH TIES;
CREATE VIEW sampled AS SELECT DISTINCT ON (added) * FROM parent TABLESAMPLE system_rows (5) ORDER BY added, id;
CREATE VIEW combined AS (SELECT 1 AS a UNION SELECT 2 INTERSECT ALL SELECT 2) EXCEPT SELECT 3;
COMMENT ON VIEW options IS 'view'; COMMENT ON COLUMN options.added IS 'column of a view';
CREATE FUNCTION of_view(options) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1.id';
CREATE VIEW on_function AS SELECT of_view(o) AS id FROM options o;
CREATE MATERIALIZED VIEW first_level WITH (fillfactor = 60) AS SELECT id % 7 AS k, count(*) AS n FROM parent GROUP BY 1 WITH NO DATA;
REFRESH MATERIALIZED VIEW first_level;
CREATE UNIQUE INDEX first_level_k ON first_level (k);
ALTER MATERIALIZED VIEW first_level CLUSTER ON first_level_k;
CREATE MATERIALIZED VIEW second_level AS SELECT sum(n) AS n FROM first_level;
CREATE MATERIALIZED VIEW unfilled AS SELECT n FROM second_level WITH NO DATA;
COMMENT ON MATERIALIZED VIEW first_level IS 'materialized';
-- A view and a function that need each other.
CREATE VIEW needs_function AS SELECT 1 AS x;
CREATE FUNCTION needs_view() RETURNS SETOF needs_function LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE VIEW needs_function AS SELECT 1 AS x FROM (SELECT count(*) FROM needs_view()) q;
CREATE TABLE default_needs (id int);
CREATE FUNCTION next_default() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT coalesce(max(id), 0) + 1 FROM default_needs; END;
ALTER TABLE default_needs ALTER COLUMN id SET DEFAULT next_default();
INSERT INTO default_needs VALUES (1), (2);
CREATE FUNCTION row_fits(default_needs) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1.id > 0';
ALTER TABLE default_needs ADD CHECK (row_fits(default_needs));

-- Rules and triggers.
CREATE RULE logged AS ON UPDATE TO parent WHERE old.added <> new.added DO ALSO (INSERT INTO unlogged (note) VALUES (old.folded || ';'); DELETE FROM unlogged WHERE note = ';');
CREATE RULE notified AS ON INSERT TO unlogged DO ALSO NOTIFY changed, 'it''s';
CREATE RULE ignored AS ON INSERT TO recursive_numbers DO INSTEAD NOTHING;
CREATE RULE deleted AS ON DELETE TO grouped DO INSTEAD DELETE FROM child WHERE own = old.id RETURNING child.own, NULL::text, 0, 0::bigint, NULL::text;
ALTER TABLE parent DISABLE RULE logged;
CREATE RULE replica_only AS ON DELETE TO unlogged DO INSTEAD NOTHING;
ALTER TABLE unlogged ENABLE REPLICA RULE replica_only;
COMMENT ON RULE logged ON parent IS 'rule';
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER of_columns BEFORE UPDATE OF added, folded ON parent FOR EACH ROW WHEN (OLD.added IS DISTINCT FROM NEW.added AND NEW.added IN (1, 2)) EXECUTE FUNCTION fire('a''b', '\x');
CREATE TRIGGER transitions AFTER UPDATE ON parent REFERENCING OLD TABLE AS "old rows" NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION fire();
CREATE TRIGGER truncated BEFORE TRUNCATE ON parent EXECUTE FUNCTION fire();
CREATE TRIGGER instead INSTEAD OF INSERT OR DELETE ON options FOR EACH ROW EXECUTE FUNCTION fire();
CREATE CONSTRAINT TRIGGER checked AFTER INSERT OR UPDATE OF room ON child FROM parent DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.room > 3) EXECUTE FUNCTION fire();
CREATE TRIGGER on_partitions AFTER INSERT ON by_list FOR EACH ROW EXECUTE FUNCTION fire();
ALTER TABLE by_list_null DISABLE TRIGGER on_partitions;
CREATE TRIGGER on_replica BEFORE DELETE ON parent FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER on_always BEFORE DELETE ON parent FOR EACH ROW EXECUTE FUNCTION fire();
ALTER TABLE parent ENABLE REPLICA TRIGGER on_replica, ENABLE ALWAYS TRIGGER on_always, DISABLE TRIGGER truncated;
CREATE TRIGGER notifying AFTER INSERT ON child FOR EACH ROW EXECUTE FUNCTION triggered_change_notification();
COMMENT ON TRIGGER of_columns ON parent IS 'trigger';

-- Policies: every clause, and every kind of role.
CREATE POLICY permissive ON parent AS PERMISSIVE FOR ALL TO PUBLIC USING (added > 0) WITH CHECK (added > 1);
CREATE POLICY restrictive ON parent AS RESTRICTIVE FOR UPDATE TO :"runtime", :"readonly", :"first" USING (is_even(added)) WITH CHECK (EXISTS (SELECT FROM child WHERE own = parent.id));
CREATE POLICY for_select ON parent FOR SELECT TO :"first" USING (folded = current_user);
CREATE POLICY for_insert ON parent FOR INSERT TO :"second", :"owner" WITH CHECK (color IN ('blue', 'green') OR added = 7);
CREATE POLICY for_delete ON parent AS RESTRICTIVE FOR DELETE TO CURRENT_USER USING (false);
CREATE POLICY "to ""using"" (" ON by_list TO SESSION_USER USING (amount > 1);
CREATE POLICY nothing_said ON child;
COMMENT ON POLICY for_select ON parent IS 'policy';
ALTER TABLE parent ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE by_list ENABLE ROW LEVEL SECURITY;
ALTER TABLE child FORCE ROW LEVEL SECURITY;

-- Publications.
CREATE PUBLICATION of_tables FOR TABLE parent (id, added) WHERE (id > 3 AND added <> 2), ONLY grand, by_list WITH (publish = 'insert, truncate', publish_via_partition_root);
CREATE PUBLICATION of_nothing;
COMMENT ON PUBLICATION of_tables IS 'publication';

-- Large objects.
SELECT lo_from_bytea(0, decode(repeat('00ff5c', 3000), 'hex')), lo_from_bytea(4294967294, 'last');
COMMENT ON LARGE OBJECT 4294967294 IS 'large';
GRANT SELECT ON LARGE OBJECT 4294967294 TO :"first" WITH GRANT OPTION;

-- Privileges.
GRANT USAGE, CREATE ON SCHEMA everything TO :"runtime", :"first" WITH GRANT OPTION;
GRANT CREATE ON SCHEMA "Ünïcode ""quoted"" schema" TO :"second";
GRANT SELECT, UPDATE ON parent TO :"first" WITH GRANT OPTION;
GRANT SELECT (id, folded), INSERT (folded), UPDATE (folded), REFERENCES (id) ON parent TO :"readonly", :"second" WITH GRANT OPTION;
REVOKE ALL ON child FROM PUBLIC, :"owner";
REVOKE GRANT OPTION FOR SELECT (id) ON parent FROM :"readonly";
GRANT TRIGGER, TRUNCATE ON child TO PUBLIC;
GRANT USAGE ON SEQUENCE numbers TO :"first" WITH GRANT OPTION;
REVOKE USAGE ON TYPE color FROM PUBLIC;
GRANT USAGE ON TYPE color, base_domain TO :"first" WITH GRANT OPTION;
REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA everything FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_even, fire, outs TO :"first" WITH GRANT OPTION;
GRANT EXECUTE ON PROCEDURE "do;it" TO :"second";
GRANT EXECUTE ON FUNCTION moving(int) TO PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA everything GRANT SELECT ON TABLES TO :"first" WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT USAGE ON TYPES TO :"second";
ALTER DEFAULT PRIVILEGES GRANT CREATE ON SCHEMAS TO :"runtime";
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION :"first";
SET search_path = everything, public;
GRANT SELECT ON parent TO :"second" WITH GRANT OPTION;
GRANT UPDATE (folded) ON parent TO :"second";
GRANT USAGE ON SCHEMA everything TO :"second" WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION is_even TO :"second";
GRANT USAGE ON TYPE color TO :"second";
GRANT SELECT ON LARGE OBJECT 4294967294 TO :"second";
CREATE TABLE of_first (id int PRIMARY KEY, color color);
CREATE VIEW view_of_first AS SELECT id FROM parent;
CREATE FUNCTION function_of_first(of_first) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE POLICY its_own ON of_first TO :"second" USING (id > 0);
ALTER TABLE of_first ENABLE ROW LEVEL SECURITY;
ALTER DEFAULT PRIVILEGES IN SCHEMA everything GRANT ALL ON TABLES TO :"second";
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM :"first";
ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO PUBLIC;
CREATE SEQUENCE sequence_of_first;
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION :"second";
GRANT SELECT ON everything.parent TO :"runtime";
GRANT USAGE ON SCHEMA everything TO PUBLIC;
CREATE TABLE "Ünïcode ""quoted"" schema".of_second (id int GENERATED BY DEFAULT AS IDENTITY, note text);
INSERT INTO "Ünïcode ""quoted"" schema".of_second (note) VALUES ('a'), ('b');
GRANT SELECT (note) ON "Ünïcode ""quoted"" schema".of_second TO :"owner", :"first" WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO :"owner";
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION :"runtime";
CREATE TABLE everything.of_runtime (id int);
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO :"readonly";
RESET SESSION AUTHORIZATION;
ALTER ROLE :"owner" IN DATABASE :"database" SET search_path = everything, public;
ALTER ROLE :"first" IN DATABASE :"database" SET work_mem = '9MB';
