-- The tables that have rows: the columns that COPY takes; the cheapest of them to read, which is of fixed length and short where
-- there is one; the partitioned table into which the dump loads the rows, where that is not the table itself; and whether the
-- table belongs to an extension, so that the dump holds no rows of it, or only some.
-- That is so where a table above is partitioned by the hash of an enum: the hash is of the label's OID, which a restore changes.
WITH loaded_by_root AS (
  SELECT p.partrelid FROM pg_partitioned_table p WHERE p.partstrat = 'h' AND (
    SELECT c.oid FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
    WHERE c.opcname = 'enum_ops' AND c.opcnamespace = 'pg_catalog'::regnamespace AND a.amname = 'hash') = ANY (p.partclass)
)
SELECT n.nspname, c.relname,
  array(SELECT attname::text FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum),
  coalesce((SELECT attname FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    ORDER BY attlen < 0, attlen, attnum LIMIT 1), ''),
  coalesce(rn.nspname, ''), coalesce(root.relname, ''), EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class root ON c.relispartition AND root.oid = pg_partition_root(c.oid)
  AND EXISTS (SELECT FROM pg_partition_ancestors(c.oid) a JOIN loaded_by_root l ON l.partrelid = a.relid)
LEFT JOIN pg_namespace rn ON rn.oid = root.relnamespace
WHERE c.relkind = 'r' AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'
ORDER BY 1, 2
