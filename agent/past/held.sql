-- The tables with their columns, and of each the relations that have its rows, with the cheapest column to read and how many rows
-- there may be, which customers can set to anything from PostgreSQL 18 on. A partition is none of its own, but the rows of its
-- table; one that is foreign has none here.
SELECT n.nspname, c.relname,
  array(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum),
  array(SELECT format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum),
  array(SELECT format('COPY %s %s TO STDOUT', l.oid::regclass, (SELECT '(' || quote_ident(attname) || ')' FROM pg_attribute
      WHERE attrelid = l.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attlen < 0, attlen, attnum LIMIT 1))
    FROM pg_class l WHERE l.relkind = 'r' AND (l.oid = c.oid OR l.oid IN (SELECT relid FROM pg_partition_tree(c.oid))) ORDER BY l.oid),
  (SELECT coalesce(sum(least(greatest(l.reltuples, 0), 1e12)), 0)::bigint FROM pg_class l
    WHERE l.relkind = 'r' AND (l.oid = c.oid OR l.oid IN (SELECT relid FROM pg_partition_tree(c.oid))))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'
ORDER BY c.relname, n.nspname
