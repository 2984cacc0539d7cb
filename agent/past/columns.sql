-- The columns of a relation: a domain is what it is over. Beside the type as it is written stands the type that has to be there for
-- that, which is an array's element, with what it is and, of an enum, its labels.
WITH RECURSIVE over AS (
  SELECT attnum, atttypid AS typ, atttypmod AS typmod FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT o.attnum, t.typbasetype, t.typtypmod FROM over o JOIN pg_type t ON t.oid = o.typ WHERE t.typtype = 'd'
)
SELECT a.attname, format_type(o.typ, o.typmod), format_type(a.atttypid, a.atttypmod), n.nspname, e.typname, e.typtype::text,
  array(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = e.oid ORDER BY enumsortorder)
FROM pg_attribute a
JOIN over o ON o.attnum = a.attnum
JOIN pg_type t ON t.oid = o.typ AND t.typtype <> 'd'
JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typlen = -1 AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
JOIN pg_namespace n ON n.oid = e.typnamespace
WHERE a.attrelid = $1
ORDER BY a.attnum
