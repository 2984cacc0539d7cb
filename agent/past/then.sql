-- A relation by its schema and name, with how much it has to read: a partitioned table has its partitions, and any other those that
-- inherit from it. Foreign ones among them are somewhere else, and unlogged ones are empty in an archive.
WITH RECURSIVE tree AS (
  SELECT c.oid, c.relkind, c.relpersistence FROM pg_class c WHERE c.oid = $1
  UNION
  SELECT c.oid, c.relkind, c.relpersistence FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid JOIN pg_class c ON c.oid = i.inhrelid
)
SELECT coalesce(bool_or(relkind = 'f'), false), coalesce(bool_or(relkind = 'r' AND relpersistence <> 'p'), false),
  coalesce(sum(pg_table_size(oid)), 0)::bigint
FROM tree
