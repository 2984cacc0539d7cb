-- A schema with something of everything that an owner login can make.
CREATE EXTENSION citext WITH SCHEMA public;
CREATE EXTENSION pg_trgm WITH SCHEMA public VERSION '1.5'; -- not the default one
CREATE EXTENSION pgcrypto WITH SCHEMA public;

CREATE SCHEMA "Weird schema; ""quoted""";
CREATE SCHEMA sales;
COMMENT ON SCHEMA sales IS 'it''s; $$ a -- comment /* with */ \restrict everything';

CREATE TYPE sales.mood AS ENUM ('sad', 'ok;', 'happy''s');
CREATE TYPE sales.pair AS (a int, "B b" text);
CREATE TYPE sales.span AS RANGE (subtype = float8, subtype_diff = float8mi);
CREATE DOMAIN sales.positive AS int DEFAULT 1 CHECK (VALUE > 0);

CREATE TABLE sales.customer (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email citext NOT NULL UNIQUE,
  mood sales.mood DEFAULT 'ok;',
  pair sales.pair,
  span sales.span,
  amount sales.positive,
  twice int GENERATED ALWAYS AS (amount * 2) STORED,
  tags text[] DEFAULT '{a,"b;c"}',
  doc jsonb,
  raw bytea,
  CONSTRAINT "odd; name" CHECK (amount < 1000000),
  EXCLUDE USING gist (span WITH &&)
);
INSERT INTO sales.customer (email, pair, span, amount, doc, raw)
  SELECT 'u' || n || '@Example.org', ROW(n, E'tab\there\nline \\. \\N')::sales.pair, sales.span(n, n + 1), n,
    jsonb_build_object('k', n, 'q', 'it''s'), decode(md5(n::text), 'hex') FROM generate_series(1, 500) n;
INSERT INTO sales.customer (email, pair) VALUES ('edge', ROW(0, E'\\.')::sales.pair), ('edge2', ROW(1, E'\n\\.\n')::sales.pair);
CREATE INDEX customer_trgm ON sales.customer USING gin ((email::text) gin_trgm_ops);
CREATE UNIQUE INDEX customer_expr ON sales.customer (lower(email::text)) WHERE mood <> 'sad';
CREATE STATISTICS sales.customer_stats (dependencies) ON id, amount FROM sales.customer;
ALTER TABLE sales.customer CLUSTER ON customer_pkey;
ALTER TABLE sales.customer ALTER COLUMN doc SET STORAGE EXTERNAL;

CREATE TABLE "Weird schema; ""quoted"""."table; ""of"" $$ 'things'" ("col; 1" int, "select" text, "Ü" text);
INSERT INTO "Weird schema; ""quoted"""."table; ""of"" $$ 'things'" VALUES (1, '\.', ''), (2, NULL, 'Zoë'), (3, E'\\N', E'a\rb');
CREATE SEQUENCE "Weird schema; ""quoted"""."seq; 'odd'" START -5 INCREMENT -3 MINVALUE -1000 MAXVALUE 5;
SELECT nextval('"Weird schema; ""quoted"""."seq; ''odd''"');
CREATE SEQUENCE sales.never_called;

CREATE TABLE sales.event (at date NOT NULL, kind text, customer bigint REFERENCES sales.customer) PARTITION BY RANGE (at);
CREATE TABLE sales.event_2025 PARTITION OF sales.event FOR VALUES FROM ('2025-01-01') TO ('2026-01-01') PARTITION BY LIST (kind);
CREATE TABLE sales.event_2025_a PARTITION OF sales.event_2025 FOR VALUES IN ('a');
CREATE TABLE sales.event_rest PARTITION OF sales.event DEFAULT;
CREATE INDEX ON sales.event (customer);
ALTER TABLE sales.event ADD CHECK (kind <> 'never');
INSERT INTO sales.event SELECT '2025-06-01', 'a', n FROM generate_series(1, 40) n;
INSERT INTO sales.event SELECT '2024-06-01', 'b', n FROM generate_series(1, 25) n;

CREATE TABLE sales.base (id int PRIMARY KEY, note text);
CREATE TABLE sales.derived (extra text) INHERITS (sales.base);
INSERT INTO sales.base VALUES (1, 'base');
INSERT INTO sales.derived VALUES (2, 'derived', 'x'), (3, 'derived', 'y');
CREATE UNLOGGED TABLE sales.scratch (id int);
INSERT INTO sales.scratch VALUES (1);
CREATE TABLE sales.empty ();

CREATE FUNCTION sales.atomic(int, text DEFAULT 'x;') RETURNS bigint LANGUAGE sql STABLE
  BEGIN ATOMIC
    SELECT CASE WHEN $1 > 0 THEN count(*) ELSE 0 END FROM sales.customer WHERE id < $1;
    SELECT count(*) FROM sales.base;
  END;
CREATE PROCEDURE sales.begin(INOUT x int) LANGUAGE plpgsql AS $body$ BEGIN x := x + 1; -- ; $$
END $body$;
CREATE FUNCTION sales.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := coalesce(NEW.note, ';'); RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON sales.base FOR EACH ROW EXECUTE FUNCTION sales.touch();
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON sales.base DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sales.touch();
CREATE AGGREGATE sales.total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE FUNCTION sales.plus(sales.pair, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1.a + $2';
CREATE OPERATOR sales.|+| (LEFTARG = sales.pair, RIGHTARG = int, FUNCTION = sales.plus);
CREATE FUNCTION sales.pair_text(sales.pair) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1.a::text $$;
CREATE CAST (sales.pair AS text) WITH FUNCTION sales.pair_text(sales.pair);

CREATE VIEW sales.moods AS SELECT mood, count(*) AS n FROM sales.customer GROUP BY mood;
CREATE RULE base_log AS ON DELETE TO sales.base DO ALSO (INSERT INTO sales.scratch VALUES (old.id); DELETE FROM sales.scratch WHERE id < 0);
CREATE RULE moods_none AS ON INSERT TO sales.moods DO INSTEAD NOTHING;

CREATE TABLE sales.secret (id int PRIMARY KEY, owner text DEFAULT current_user);
INSERT INTO sales.secret SELECT n, 'someone' FROM generate_series(1, 7) n;
CREATE POLICY mine ON sales.secret FOR SELECT TO shop, "shop reader" USING (owner = current_user);
CREATE POLICY "to; using" ON sales.secret AS RESTRICTIVE FOR INSERT TO shop WITH CHECK (id > 0);
ALTER TABLE sales.secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE sales.secret FORCE ROW LEVEL SECURITY;
CREATE MATERIALIZED VIEW sales.secret_count AS SELECT count(*) AS n FROM sales.secret;
CREATE MATERIALIZED VIEW sales.unfilled AS SELECT 1 AS one WITH NO DATA;
CREATE UNIQUE INDEX ON sales.secret_count (n);

CREATE COLLATION sales.plain (provider = icu, locale = 'de-u-kn-true');
CREATE TEXT SEARCH CONFIGURATION sales.words (COPY = simple);
CREATE PUBLICATION changes FOR TABLE sales.base, sales.customer WITH (publish = 'insert');
SELECT lo_from_bytea(0, decode(repeat('00ff', 5000), 'hex')), lo_from_bytea(0, ''), lo_from_bytea(0, 'x;''');

GRANT USAGE ON SCHEMA sales TO "shop reader";
GRANT SELECT ON ALL TABLES IN SCHEMA sales TO "shop reader";
GRANT UPDATE (email) ON sales.customer TO "shop reader" WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO "shop reader";
REVOKE EXECUTE ON FUNCTION sales.plus FROM PUBLIC;
