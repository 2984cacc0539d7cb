-- How many objects of each kind a database has that a dump must bring back: what PostgreSQL itself and extensions made is left
-- out, and so is what pg_dump leaves out (invalid indexes) and what comes with something else (clones of foreign keys and
-- triggers on partitions, array types).
WITH ns AS (
  SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
), made AS MATERIALIZED (
  SELECT classid, objid FROM pg_depend WHERE deptype = 'e'
), rel AS MATERIALIZED (
  SELECT c.* FROM pg_class c JOIN ns ON ns.oid = c.relnamespace
  WHERE (SELECT count(*) FROM made WHERE classid = 'pg_class'::regclass AND objid = c.oid) = 0
), found(kind) AS (
  SELECT 'schema' FROM ns WHERE nspname <> 'public'
    AND NOT EXISTS (SELECT FROM made WHERE classid = 'pg_namespace'::regclass AND objid = ns.oid)
  UNION ALL SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' ELSE 'composite type' END
    FROM rel WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c')
  UNION ALL SELECT 'populated materialized view' FROM rel WHERE relkind = 'm' AND relispopulated
  UNION ALL SELECT 'unlogged table' FROM rel WHERE relkind = 'r' AND relpersistence = 'u'
  UNION ALL SELECT 'table with row security' FROM rel WHERE relrowsecurity
  UNION ALL SELECT 'table with forced row security' FROM rel WHERE relforcerowsecurity
  UNION ALL SELECT 'inheritance' FROM pg_inherits JOIN rel ON rel.oid = inhrelid WHERE relkind IN ('r', 'p', 'f')
  UNION ALL SELECT 'column' FROM pg_attribute JOIN rel ON rel.oid = attrelid
    WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
  UNION ALL SELECT CASE attgenerated WHEN '' THEN 'column default' ELSE 'generated column' END
    FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum JOIN rel ON rel.oid = adrelid
  UNION ALL SELECT 'identity column' FROM pg_attribute JOIN rel ON rel.oid = attrelid
    WHERE attidentity <> '' AND NOT attisdropped
  UNION ALL SELECT CASE WHEN indisunique THEN 'unique index' ELSE 'index' END
    FROM pg_index JOIN rel ON rel.oid = indrelid WHERE indisvalid
  UNION ALL SELECT CASE contype WHEN 'c' THEN 'check constraint' WHEN 'f' THEN 'foreign key' WHEN 'p' THEN 'primary key'
    WHEN 'u' THEN 'unique constraint' WHEN 'x' THEN 'exclusion constraint' END
    FROM pg_constraint JOIN rel ON rel.oid = conrelid
    WHERE contype IN ('c', 'f', 'p', 'u', 'x') AND (contype <> 'f' OR conparentid = 0)
  UNION ALL SELECT 'domain constraint' FROM pg_constraint JOIN pg_type t ON t.oid = contypid JOIN ns ON ns.oid = typnamespace
    WHERE contype = 'c' AND NOT EXISTS (SELECT FROM made WHERE classid = 'pg_type'::regclass AND objid = t.oid)
  UNION ALL SELECT 'trigger' FROM pg_trigger JOIN rel ON rel.oid = tgrelid WHERE NOT tgisinternal AND tgparentid = 0
  UNION ALL SELECT 'rule' FROM pg_rewrite JOIN rel ON rel.oid = ev_class WHERE rulename <> '_RETURN'
  UNION ALL SELECT 'policy' FROM pg_policy JOIN rel ON rel.oid = polrelid
  UNION ALL SELECT CASE prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END
    FROM pg_proc p JOIN ns ON ns.oid = pronamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_proc'::regclass AND objid = p.oid)
  UNION ALL SELECT CASE typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN 'domain' WHEN 'r' THEN 'range type' ELSE 'base type' END
    FROM pg_type t JOIN ns ON ns.oid = typnamespace
    WHERE typtype IN ('b', 'd', 'e', 'r') AND typisdefined AND NOT (typtype = 'b' AND typcategory = 'A')
    AND NOT EXISTS (SELECT FROM made WHERE classid = 'pg_type'::regclass AND objid = t.oid)
  UNION ALL SELECT 'enum label' FROM pg_enum JOIN pg_type t ON t.oid = enumtypid JOIN ns ON ns.oid = typnamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_type'::regclass AND objid = t.oid)
  UNION ALL SELECT 'operator' FROM pg_operator o JOIN ns ON ns.oid = oprnamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_operator'::regclass AND objid = o.oid)
  UNION ALL SELECT 'operator class' FROM pg_opclass o JOIN ns ON ns.oid = opcnamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_opclass'::regclass AND objid = o.oid)
  UNION ALL SELECT 'collation' FROM pg_collation c JOIN ns ON ns.oid = collnamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_collation'::regclass AND objid = c.oid)
  UNION ALL SELECT 'conversion' FROM pg_conversion c JOIN ns ON ns.oid = connamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_conversion'::regclass AND objid = c.oid)
  UNION ALL SELECT 'text search configuration' FROM pg_ts_config c JOIN ns ON ns.oid = cfgnamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_ts_config'::regclass AND objid = c.oid)
  UNION ALL SELECT 'text search dictionary' FROM pg_ts_dict d JOIN ns ON ns.oid = dictnamespace
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_ts_dict'::regclass AND objid = d.oid)
  UNION ALL SELECT 'statistics object' FROM pg_statistic_ext JOIN ns ON ns.oid = stxnamespace
  UNION ALL SELECT 'cast' FROM pg_cast c WHERE c.oid >= 16384
    AND NOT EXISTS (SELECT FROM made WHERE classid = 'pg_cast'::regclass AND objid = c.oid)
  UNION ALL SELECT 'publication' FROM pg_publication
  UNION ALL SELECT 'published table' FROM pg_publication_rel
  UNION ALL SELECT 'event trigger' FROM pg_event_trigger e
    WHERE NOT EXISTS (SELECT FROM made WHERE classid = 'pg_event_trigger'::regclass AND objid = e.oid)
)
SELECT kind, count(*) FROM found GROUP BY kind
