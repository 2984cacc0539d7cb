-- What pg_dump finds by name, or asks of PostgreSQL as it is now and not as its snapshot sees it: a text that changes with it, and
-- a name for people. Of a sequence that is where it is stored, which a restart changes.
WITH ns AS (SELECT oid, quote_ident(nspname) AS name, xmin FROM pg_namespace WHERE nspname !~ '^pg_')
SELECT 'n' || oid || ':' || xmin, 'schema ' || name FROM ns
UNION ALL SELECT 'c' || c.oid || ':' || relname || ':' || relnamespace || CASE relkind WHEN 'S' THEN ':' || relfilenode ELSE '' END,
  CASE relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' WHEN 'i' THEN 'index '
    WHEN 'f' THEN 'foreign table ' ELSE 'table ' END || ns.name || '.' || quote_ident(relname)
  FROM pg_class c JOIN ns ON ns.oid = relnamespace
UNION ALL SELECT 'p' || p.oid || ':' || p.xmin, 'function ' || ns.name || '.' || quote_ident(proname)
  FROM pg_proc p JOIN ns ON ns.oid = pronamespace WHERE p.oid >= 16384
UNION ALL SELECT 't' || t.oid || ':' || t.xmin, 'type ' || ns.name || '.' || quote_ident(typname)
  FROM pg_type t JOIN ns ON ns.oid = typnamespace WHERE t.oid >= 16384 AND typrelid = 0 AND typcategory <> 'A'
UNION ALL SELECT 'e' || oid || ':' || xmin, 'label ' || quote_literal(enumlabel) FROM pg_enum WHERE oid >= 16384
UNION ALL SELECT 'g' || oid || ':' || xmin, 'trigger ' || quote_ident(tgname) FROM pg_trigger WHERE oid >= 16384
UNION ALL SELECT 'o' || oid || ':' || xmin, 'operator ' || oprname FROM pg_operator WHERE oid >= 16384
UNION ALL SELECT 'a' || oid || ':' || xmin, 'operator class ' || quote_ident(opcname) FROM pg_opclass WHERE oid >= 16384
UNION ALL SELECT 'f' || oid || ':' || xmin, 'operator family ' || quote_ident(opfname) FROM pg_opfamily WHERE oid >= 16384
UNION ALL SELECT 'l' || oid || ':' || xmin, 'collation ' || quote_ident(collname) FROM pg_collation WHERE oid >= 16384
UNION ALL SELECT 's' || oid || ':' || xmin, 'statistics object ' || quote_ident(stxname) FROM pg_statistic_ext
UNION ALL SELECT 'd' || oid || ':' || xmin, 'text search dictionary ' || quote_ident(dictname) FROM pg_ts_dict WHERE oid >= 16384
UNION ALL SELECT 'w' || oid || ':' || xmin, 'text search configuration ' || quote_ident(cfgname) FROM pg_ts_config WHERE oid >= 16384
UNION ALL SELECT 'x' || oid || ':' || xmin, 'extension ' || quote_ident(extname) FROM pg_extension
