-- What logins of a customer can make on PostgreSQL 17 or 18 and not on 16, each part only where the server knows it. See
-- everything.sql.
SELECT :SERVER_VERSION_NUM >= 180000 AS is_18 \gset
CREATE SCHEMA newer;
SET search_path = newer, public;

-- PostgreSQL 17.
CREATE TABLE maintained (id int PRIMARY KEY, day date DEFAULT '2024-09-26', pause interval);
INSERT INTO maintained VALUES (1, DEFAULT, 'infinity'), (2, '2025-09-25', '-infinity');
GRANT MAINTAIN ON maintained TO :"first" WITH GRANT OPTION;
GRANT ALL ON maintained TO :"runtime";
REVOKE MAINTAIN ON maintained FROM :"owner";
CREATE TABLE all_but_maintain (id int);
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON all_but_maintain TO :"second", PUBLIC;
GRANT MAINTAIN ON all_but_maintain TO PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA newer GRANT MAINTAIN ON TABLES TO :"second" WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES REVOKE MAINTAIN ON TABLES FROM :"owner";
CREATE TABLE after_these_defaults (id int);
CREATE TABLE counted (id int GENERATED ALWAYS AS IDENTITY, day date NOT NULL) PARTITION BY RANGE (day);
CREATE TABLE counted_24 PARTITION OF counted FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO counted (day) VALUES ('2024-02-03'), ('2024-02-04');
CREATE COLLATION plain (provider = builtin, locale = 'C.UTF-8');
CREATE TABLE words (word text COLLATE plain PRIMARY KEY);
INSERT INTO words VALUES ('é'), ('z'), ('Z');
CREATE INDEX of_capitals ON words (upper(word));
CREATE DOMAIN there AS int CONSTRAINT "must be there" NOT NULL;
CREATE VIEW of_json AS
    SELECT t.*, JSON_VALUE('{"a": 1}'::jsonb, '$.a' RETURNING int) AS one, JSON_EXISTS('{"a": 1}'::jsonb, '$.b') AS other,
        JSON_QUERY('{"a": [1]}'::jsonb, '$.a' WITH WRAPPER) AS list, timestamptz '2024-09-26' AT LOCAL AS here
    FROM JSON_TABLE('[{"a": 1, "b": [{"c": 2}]}]'::jsonb, '$[*]' COLUMNS (
        n FOR ORDINALITY, a int PATH '$.a' DEFAULT 7 ON EMPTY, has boolean EXISTS PATH '$.b',
        NESTED PATH '$.b[*]' COLUMNS (c int PATH '$.c'))) t;
CREATE FUNCTION merged(int) RETURNS SETOF text LANGUAGE sql BEGIN ATOMIC
    MERGE INTO maintained m USING (SELECT $1 AS id) s ON m.id = s.id
        WHEN MATCHED THEN UPDATE SET day = '2024-01-01'
        WHEN NOT MATCHED BY SOURCE THEN DELETE
        WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (s.id)
        RETURNING merge_action();
END;

-- PostgreSQL 18.
\if :is_18
CREATE TABLE named (id int CONSTRAINT "id's there" NOT NULL, own int CONSTRAINT own_there NOT NULL NO INHERIT, later int);
INSERT INTO named VALUES (1, 2, NULL);
ALTER TABLE named ADD CONSTRAINT later_there NOT NULL later NOT VALID;
COMMENT ON CONSTRAINT "id's there" ON named IS 'named';
CREATE TABLE heir (id int CONSTRAINT "heir's" NOT NULL) INHERITS (named);
INSERT INTO heir VALUES (3, NULL, 4);
CREATE TABLE shown (a int, twice int GENERATED ALWAYS AS (a * 2), word text GENERATED ALWAYS AS (upper(a::text)) VIRTUAL,
    kept int GENERATED ALWAYS AS (a + 1) STORED);
INSERT INTO shown VALUES (1), (NULL), (3);
COMMENT ON COLUMN shown.twice IS 'virtual';
GRANT SELECT (twice), MAINTAIN ON shown TO :"first";
CREATE TABLE stays (room int4range, during tstzrange, PRIMARY KEY (room, during WITHOUT OVERLAPS));
CREATE TABLE bills (room int4range, during tstzrange, sum int, UNIQUE (room, during WITHOUT OVERLAPS),
    FOREIGN KEY (room, PERIOD during) REFERENCES stays (room, PERIOD during));
INSERT INTO stays VALUES ('[1,1]', '[2025-01-01,2025-01-05)'), ('[1,1]', '[2025-01-05,2025-01-09)');
INSERT INTO bills VALUES ('[1,1]', '[2025-01-02,2025-01-08)', 300);
CREATE TABLE lax (a int CONSTRAINT positive CHECK (a > 0) NOT ENFORCED, b int);
INSERT INTO lax VALUES (-1, 77);
ALTER TABLE lax ADD CONSTRAINT nowhere FOREIGN KEY (b) REFERENCES maintained NOT ENFORCED;
CREATE COLLATION fast (provider = builtin, locale = 'PG_UNICODE_FAST');
CREATE TABLE folded (id uuid DEFAULT uuidv7() PRIMARY KEY, word text COLLATE fast, casefolded text COLLATE fast
    GENERATED ALWAYS AS (casefold(word)) STORED);
INSERT INTO folded (id, word) VALUES ('01990000-0000-7000-8000-000000000000', 'Straße');
CREATE FUNCTION changed(int) RETURNS SETOF int LANGUAGE sql BEGIN ATOMIC
    UPDATE maintained SET id = $1 WHERE id = 1 RETURNING old.id + new.id;
END;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON LARGE OBJECTS TO :"runtime", :"first" WITH GRANT OPTION;
SELECT lo_from_bytea(0, 'read by two besides its owner');
ALTER DEFAULT PRIVILEGES GRANT ALL ON LARGE OBJECTS TO :"second";
SELECT lo_from_bytea(0, 'written by another');
ALTER DEFAULT PRIVILEGES REVOKE UPDATE ON LARGE OBJECTS FROM :"owner";
SELECT lo_create(0);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION :"first";
ALTER DEFAULT PRIVILEGES GRANT SELECT ON LARGE OBJECTS TO PUBLIC;
SELECT lo_from_bytea(0, 'read by everybody');
\endif
RESET SESSION AUTHORIZATION;
