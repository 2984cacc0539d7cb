-- Puts up to ten rows into each table of a schema that somebody else has written. A row that a constraint or a trigger refuses is
-- left out, and what refers to rows of another table is tried again when those are there.
SET search_path = public;
CREATE FUNCTION pg_temp.value(kind regtype, longest int, n int) RETURNS text LANGUAGE sql AS $value$
  SELECT CASE
    WHEN t.typtype = 'e' THEN (SELECT quote_literal(enumlabel) FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder LIMIT 1)
    WHEN t.typtype = 'd' AND t.typbasetype = 'bytea'::regtype THEN format('substr(decode(%L, ''hex''), 1, %s)',
      repeat(md5(n::text), 2), coalesce((regexp_match(t.typname, '\d+$'))[1], '32'))
    WHEN t.typtype = 'd' THEN pg_temp.value(t.typbasetype, longest, n)
    WHEN t.typcategory = 'A' THEN quote_literal('{}')
    WHEN t.typcategory = 'B' THEN (n % 2 = 0)::text
    WHEN t.typcategory = 'N' THEN n::text
    WHEN t.typcategory = 'D' THEN format('timestamptz ''2026-03-29 00:30:00.123456+00'' + %L::interval', n || ' hours')
    WHEN t.typcategory = 'T' THEN quote_literal(n || ' days')
    WHEN t.typcategory = 'I' THEN quote_literal('192.0.2.' || n)
    WHEN t.typname = 'macaddr' THEN quote_literal('02:00:00:00:00:0' || n % 10)
    WHEN t.typname IN ('json', 'jsonb') THEN quote_literal(jsonb_build_object('n', n, 'text', E'it''s \\ "quoted"\n'))
    WHEN t.typname = 'uuid' THEN quote_literal(md5(n::text))
    WHEN t.typname = 'bytea' THEN format('decode(%L, ''hex'')', '00ff5c' || md5(n::text))
    ELSE quote_literal(left((ARRAY[n::text, E'\\.', E'a\tb\\N', 'Zoë; ''', E'\r\n--', '', ' ', '$$', '\N', 'NULL'])[n]
      || CASE WHEN n > 1 THEN n::text ELSE '' END, CASE WHEN longest > 0 THEN longest ELSE 1000 END)) END
  FROM pg_type t WHERE t.oid = kind
$value$;
CREATE FUNCTION pg_temp.row_of(relation regclass, n int) RETURNS text LANGUAGE sql AS $value$
  SELECT format('INSERT INTO %s (%s) SELECT %s', relation, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
    string_agg(coalesce(referred, pg_temp.value(a.atttypid, CASE WHEN a.atttypmod > 4 THEN a.atttypmod - 4 ELSE -1 END, n)), ', '
      ORDER BY a.attnum))
  FROM pg_attribute a LEFT JOIN LATERAL (
    SELECT format('(SELECT %I FROM %s ORDER BY ctid OFFSET %s LIMIT 1)', f.attname, c.confrelid::regclass,
      (n - 1) || ' % (SELECT greatest(count(*), 1) FROM ' || c.confrelid::regclass || ')') AS referred
    FROM pg_constraint c JOIN pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[array_position(c.conkey, a.attnum)]
    WHERE c.contype = 'f' AND c.conrelid = relation AND a.attnum = ANY (c.conkey) ORDER BY c.conname LIMIT 1) r ON true
  WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity <> 'a'
$value$;
DO $fill$
DECLARE relation regclass; filled boolean;
BEGIN
  FOR pass IN 1..4 LOOP
    FOR relation IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY oid LOOP
      EXECUTE format('SELECT EXISTS (SELECT FROM %s)', relation) INTO filled;
      CONTINUE WHEN filled;
      FOR n IN 1..10 LOOP
        BEGIN
          EXECUTE pg_temp.row_of(relation, n);
        EXCEPTION WHEN OTHERS THEN NULL; -- a test counts the tables that stay empty
        END;
      END LOOP;
    END LOOP;
  END LOOP;
END $fill$;
