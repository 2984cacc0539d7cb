-- What pg_dump finds by name, or asks of PostgreSQL as it is now and not as its snapshot sees it: a text that changes with it, and
-- a name for people. Of a sequence that is where it is stored, which a restart changes. Tables
-- are locked, and what is temporary comes and goes.
WITH ns AS (SELECT oid, quote_ident(nspname) AS name, xmin FROM pg_namespace
  WHERE nspname !~ '^pg_' AND nspname <> 'information_schema')
SELECT 'n' || oid || ':' || xmin, 'schema ' || name FROM ns
UNION ALL SELECT 'c' || c.oid || ':' || relname || ':' || relnamespace || CASE relkind WHEN 'S' THEN ':' || relfilenode ELSE '' END,
  CASE relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' WHEN 'f' THEN 'foreign table '
    WHEN 'c' THEN 'type ' ELSE 'index ' END || ns.name || '.' || quote_ident(relname)
  FROM pg_class c JOIN ns ON ns.oid = relnamespace WHERE relkind NOT IN ('r', 'p')
UNION ALL SELECT 'p' || p.oid || ':' || p.xmin, 'function ' || ns.name || '.' || quote_ident(proname)
  FROM pg_proc p JOIN ns ON ns.oid = pronamespace WHERE p.oid >= 16384
UNION ALL SELECT 't' || t.oid || ':' || t.xmin, 'type ' || ns.name || '.' || quote_ident(typname)
  FROM pg_type t JOIN ns ON ns.oid = typnamespace WHERE t.oid >= 16384 AND typrelid = 0 AND typcategory <> 'A'
UNION ALL SELECT 'e' || e.oid || ':' || e.xmin, 'label ' || quote_literal(enumlabel)
  FROM pg_enum e JOIN pg_type t ON t.oid = enumtypid JOIN ns ON ns.oid = typnamespace
UNION ALL SELECT 'g' || g.oid || ':' || g.xmin, 'trigger ' || quote_ident(tgname)
  FROM pg_trigger g JOIN pg_class c ON c.oid = tgrelid JOIN ns ON ns.oid = relnamespace WHERE g.oid >= 16384
UNION ALL SELECT 'o' || o.oid || ':' || o.xmin, 'operator ' || oprname FROM pg_operator o JOIN ns ON ns.oid = oprnamespace
UNION ALL SELECT 'a' || o.oid || ':' || o.xmin, 'operator class ' || quote_ident(opcname)
  FROM pg_opclass o JOIN ns ON ns.oid = opcnamespace
UNION ALL SELECT 'f' || o.oid || ':' || o.xmin, 'operator family ' || quote_ident(opfname)
  FROM pg_opfamily o JOIN ns ON ns.oid = opfnamespace
UNION ALL SELECT 'l' || l.oid || ':' || l.xmin, 'collation ' || quote_ident(collname)
  FROM pg_collation l JOIN ns ON ns.oid = collnamespace
UNION ALL SELECT 's' || s.oid || ':' || s.xmin, 'statistics object ' || quote_ident(stxname)
  FROM pg_statistic_ext s JOIN pg_class c ON c.oid = stxrelid JOIN ns ON ns.oid = relnamespace
UNION ALL SELECT 'd' || d.oid || ':' || d.xmin, 'text search dictionary ' || quote_ident(dictname)
  FROM pg_ts_dict d JOIN ns ON ns.oid = dictnamespace
UNION ALL SELECT 'w' || w.oid || ':' || w.xmin, 'text search configuration ' || quote_ident(cfgname)
  FROM pg_ts_config w JOIN ns ON ns.oid = cfgnamespace
UNION ALL SELECT 'x' || oid || ':' || xmin, 'extension ' || quote_ident(extname) FROM pg_extension
