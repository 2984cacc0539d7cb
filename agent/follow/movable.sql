-- What logical replication does not carry over of a database: the kind of each obstacle, and its object.
WITH rel AS MATERIALIZED (
  SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name, EXISTS (SELECT FROM pg_depend e
      WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e') AS member
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'
), held AS MATERIALIZED (
  SELECT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
), filled AS MATERIALIZED (
  -- Tables that have rows of which no changes come. One that somebody has locked may: who asks for its size waits for that.
  SELECT name, member, relpersistence FROM rel WHERE relkind = 'r' AND (relpersistence = 'u' OR member)
    AND CASE WHEN oid IN (SELECT relation FROM held) THEN true ELSE pg_relation_size(oid) > 0 END
), comparable AS (
  -- types whose values PostgreSQL can tell apart
  SELECT t.oid FROM pg_type t WHERE t.typtype IN ('e', 'r', 'm') OR EXISTS (
    SELECT FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod WHERE o.opcdefault AND a.amname IN ('btree', 'hash')
      AND (o.opcintype = t.oid OR EXISTS (
        SELECT FROM pg_cast c WHERE c.castsource = t.oid AND c.casttarget = o.opcintype AND c.castmethod = 'b')))
), columns AS (
  SELECT a.attrelid, coalesce(nullif(base.typelem, 0), base.oid) AS element
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  CROSS JOIN LATERAL (
    WITH RECURSIVE down AS (SELECT t.oid, t.typbasetype UNION ALL
      SELECT b.oid, b.typbasetype FROM down JOIN pg_type b ON b.oid = down.typbasetype)
    SELECT p.oid, CASE WHEN p.typcategory = 'A' THEN p.typelem ELSE 0 END AS typelem
    FROM down JOIN pg_type p ON p.oid = down.oid WHERE down.typbasetype = 0) base
  WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
), found (kind, object) AS (
  SELECT 'no_replica_identity', name FROM rel WHERE relkind IN ('r', 'p') AND relpersistence = 'p' AND NOT member AND NOT CASE relreplident
    WHEN 'd' THEN EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisprimary AND indimmediate AND indisvalid)
    WHEN 'i' THEN EXISTS (SELECT FROM pg_index WHERE indrelid = rel.oid AND indisreplident AND indimmediate AND indisvalid)
    WHEN 'f' THEN NOT EXISTS (SELECT FROM columns WHERE attrelid = rel.oid AND element NOT IN (SELECT oid FROM comparable))
    ELSE false END
  UNION ALL SELECT 'unlogged', name FROM filled WHERE relpersistence = 'u'
  UNION ALL SELECT 'materialized_view', name FROM rel WHERE relkind = 'm' AND relispopulated
  UNION ALL SELECT 'other', format('table %s of an extension', name) FROM filled WHERE member
  UNION ALL SELECT 'other', format('table %s, whose owner this service has not made', name) FROM rel
    WHERE relkind IN ('r', 'p') AND NOT member AND NOT pg_has_role(relowner, 'USAGE')
  UNION ALL SELECT 'other', format('publication %I', pubname) FROM pg_publication
    WHERE NOT (pubname ~ '^move_[0-9a-f]{32}$' AND pubowner = current_user::regrole)
)
SELECT kind, object, count(*) OVER () FROM found
ORDER BY array_position(ARRAY['no_replica_identity', 'unlogged', 'materialized_view', 'other'], kind), object LIMIT $1
