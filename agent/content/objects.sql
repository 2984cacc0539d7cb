-- Every object of the database but those that initdb makes and those of temporary schemas: its kind, its name, the relation that
-- it is part of, the extension that it belongs to, and in short what it is. Names are as pg_identify_object writes them. Left out
-- are what pg_dump leaves out for good reason (invalid indexes), what comes with something else under a name that PostgreSQL makes
-- up (foreign keys and triggers of partitions, row and array types), what is compared elsewhere (large objects, extensions
-- themselves, privileges, default privileges), and the schema public, which every copy has at first.
--
-- What belongs to an extension and has an owner other than the superuser who ran initdb can have been changed by a customer. No
-- dump has such a change, so definitions and comments are part of what it is: nothing is evaluated to write them down.
WITH ns AS MATERIALIZED (
  SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast)'
), member AS MATERIALIZED (
  SELECT d.classid, d.objid, quote_ident(e.extname) AS extension, EXISTS (SELECT FROM pg_shdepend s
    WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND s.classid = d.classid AND s.objid = d.objid AND s.deptype = 'o') AS own
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND d.objid >= 16384
), pub AS MATERIALIZED (
  -- all but the agent's own, of databases that move
  SELECT * FROM pg_publication WHERE NOT (pubname ~ '^move_[0-9a-f]{32}$' AND pubowner = current_user::regrole)
), commented AS MATERIALIZED (
  SELECT classid, objid, md5(string_agg(objsubid || description, '' ORDER BY objsubid)) AS comment
  FROM member JOIN pg_description ON classoid = classid AND objoid = objid WHERE own GROUP BY 1, 2
), rel AS MATERIALIZED (
  SELECT c.oid, c.relkind, c.relispopulated, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
    format('%I.%I', nspname, relname) AS name, extension, coalesce(own, false) AS own
  FROM pg_class c JOIN ns ON ns.oid = relnamespace LEFT JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid
  WHERE c.oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
), part (kind, name, relation, extension, definition) AS (
  SELECT 'inheritance', format('%s of %I.%I', rel.name, n.nspname, p.relname), rel.name, extension, NULL::text
    FROM pg_inherits JOIN rel ON rel.oid = inhrelid JOIN pg_class p ON p.oid = inhparent
    JOIN pg_namespace n ON n.oid = p.relnamespace
  UNION ALL SELECT CASE attgenerated WHEN '' THEN 'column default' WHEN 'v' THEN 'virtual column' ELSE 'generated column' END,
    format('%s.%I', rel.name, attname), rel.name, extension, CASE WHEN own THEN pg_get_expr(adbin, adrelid) END
    FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum JOIN rel ON rel.oid = adrelid
  UNION ALL SELECT 'identity column', format('%s.%I', rel.name, attname), rel.name, extension, NULL
    FROM pg_attribute JOIN rel ON rel.oid = attrelid WHERE attidentity <> '' AND NOT attisdropped
  UNION ALL SELECT CASE WHEN indisunique THEN 'unique index' ELSE 'index' END, format('%I.%I', nspname, i.relname), rel.name,
    extension, CASE WHEN own THEN pg_get_indexdef(indexrelid) END
    FROM pg_index JOIN rel ON rel.oid = indrelid JOIN pg_class i ON i.oid = indexrelid JOIN ns ON ns.oid = i.relnamespace
    WHERE indisvalid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
  UNION ALL SELECT CASE contype WHEN 'c' THEN 'check constraint' WHEN 'f' THEN 'foreign key' WHEN 'p' THEN 'primary key'
    WHEN 'u' THEN 'unique constraint' WHEN 'x' THEN 'exclusion constraint' END, format('%I on %s', conname, rel.name), rel.name,
    extension, CASE WHEN own THEN pg_get_constraintdef(c.oid) END
    FROM pg_constraint c JOIN rel ON rel.oid = conrelid
    WHERE contype IN ('c', 'f', 'p', 'u', 'x') AND (contype <> 'f' OR conparentid = 0)
  UNION ALL SELECT 'trigger', format('%I on %s', tgname, rel.name), rel.name, extension,
    CASE WHEN own THEN concat(tgenabled, pg_get_triggerdef(t.oid)) END
    FROM pg_trigger t JOIN rel ON rel.oid = tgrelid WHERE NOT tgisinternal AND tgparentid = 0
  UNION ALL SELECT 'rule', format('%I on %s', rulename, rel.name), rel.name, extension,
    CASE WHEN own THEN concat(ev_enabled, pg_get_ruledef(r.oid)) END
    FROM pg_rewrite r JOIN rel ON rel.oid = ev_class WHERE rulename <> '_RETURN'
  UNION ALL SELECT 'policy', format('%I on %s', polname, rel.name), rel.name, extension, CASE WHEN own THEN
    concat_ws(' ', polcmd, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) END
    FROM pg_policy JOIN rel ON rel.oid = polrelid
  UNION ALL SELECT 'statistics object', format('%I.%I', nspname, stxname), rel.name, extension,
    CASE WHEN own THEN pg_get_statisticsobjdef(s.oid) END
    FROM pg_statistic_ext s JOIN ns ON ns.oid = stxnamespace JOIN rel ON rel.oid = stxrelid
  UNION ALL SELECT 'publication relation', format('%s in publication %I', rel.name, pubname), rel.name, extension, NULL
    FROM pg_publication_rel JOIN rel ON rel.oid = prrelid JOIN pub p ON p.oid = prpubid
), named (classid, objid, kind, name, what, definition) AS (
  SELECT 'pg_proc'::regclass, p.oid, CASE prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END,
    format('%I.%I(%s)', nspname, proname, CASE WHEN prokind = 'a' AND pronargs = 0 THEN '*' ELSE oidvectortypes(proargtypes) END),
    NULL, CASE WHEN prokind <> 'a' AND EXISTS (SELECT FROM member WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND own)
      THEN pg_get_functiondef(p.oid) END
    FROM pg_proc p JOIN ns ON ns.oid = pronamespace WHERE p.oid >= 16384
  UNION ALL SELECT 'pg_type'::regclass, t.oid, 'type', format('%I.%I', nspname, typname),
    CASE typtype WHEN 'e' THEN 'enum (' ||
      array_to_string(array(SELECT enumlabel FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder), ', ') || ')'
    WHEN 'c' THEN 'columns (' || array_to_string(array(SELECT attname FROM pg_attribute
      WHERE attrelid = typrelid AND attnum > 0 AND NOT attisdropped ORDER BY attnum), ', ') || ')'
    WHEN 'd' THEN 'domain' WHEN 'r' THEN 'range' WHEN 'm' THEN 'multirange' ELSE 'base' END, NULL
    FROM pg_type t JOIN ns ON ns.oid = typnamespace LEFT JOIN pg_class c ON c.oid = typrelid
    WHERE t.oid >= 16384 AND typisdefined AND typsubscript <> 'array_subscript_handler'::regproc
    AND (typtype <> 'c' OR c.relkind = 'c')
  UNION ALL SELECT 'pg_constraint'::regclass, c.oid, 'domain constraint', format('%I on %I.%I', conname, nspname, typname),
    NULL, NULL FROM pg_constraint c JOIN pg_type t ON t.oid = contypid JOIN ns ON ns.oid = typnamespace
    WHERE c.oid >= 16384 AND contype = 'c'
), other (classid, objid) AS (
  SELECT classid, objid FROM member WHERE classid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
  UNION SELECT 'pg_namespace'::regclass, oid FROM ns WHERE nspname <> 'public'
  UNION SELECT 'pg_operator'::regclass, o.oid FROM pg_operator o JOIN ns ON ns.oid = oprnamespace
  UNION SELECT 'pg_opclass'::regclass, o.oid FROM pg_opclass o JOIN ns ON ns.oid = opcnamespace
  UNION SELECT 'pg_opfamily'::regclass, o.oid FROM pg_opfamily o JOIN ns ON ns.oid = opfnamespace
  UNION SELECT 'pg_collation'::regclass, c.oid FROM pg_collation c JOIN ns ON ns.oid = collnamespace
  UNION SELECT 'pg_conversion'::regclass, c.oid FROM pg_conversion c JOIN ns ON ns.oid = connamespace
  UNION SELECT 'pg_ts_config'::regclass, c.oid FROM pg_ts_config c JOIN ns ON ns.oid = cfgnamespace
  UNION SELECT 'pg_ts_dict'::regclass, d.oid FROM pg_ts_dict d JOIN ns ON ns.oid = dictnamespace
  UNION SELECT 'pg_ts_parser'::regclass, p.oid FROM pg_ts_parser p JOIN ns ON ns.oid = prsnamespace
  UNION SELECT 'pg_ts_template'::regclass, t.oid FROM pg_ts_template t JOIN ns ON ns.oid = tmplnamespace
  UNION SELECT 'pg_cast'::regclass, oid FROM pg_cast
  UNION SELECT 'pg_transform'::regclass, oid FROM pg_transform
  UNION SELECT 'pg_language'::regclass, oid FROM pg_language
  UNION SELECT 'pg_am'::regclass, oid FROM pg_am
  UNION SELECT 'pg_event_trigger'::regclass, oid FROM pg_event_trigger
  UNION SELECT 'pg_foreign_data_wrapper'::regclass, oid FROM pg_foreign_data_wrapper
  UNION SELECT 'pg_foreign_server'::regclass, oid FROM pg_foreign_server
  UNION SELECT 'pg_user_mapping'::regclass, oid FROM pg_user_mapping
  UNION SELECT 'pg_publication'::regclass, oid FROM pub
  UNION SELECT 'pg_publication_namespace'::regclass, oid FROM pg_publication_namespace
  UNION SELECT 'pg_subscription'::regclass, oid FROM pg_subscription
    WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
), found (kind, name, relation, extension, what) AS (
  SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence'
    WHEN 'f' THEN 'foreign table' ELSE 'table' END, name, NULL, extension,
    concat_ws(', ', CASE WHEN relkind = 'p' THEN 'partitioned' END,
      CASE WHEN relkind = 'm' AND relispopulated THEN 'populated' END, CASE WHEN relpersistence = 'u' THEN 'unlogged' END, CASE WHEN relrowsecurity THEN 'row security' END,
      CASE WHEN relforcerowsecurity THEN 'forced row security' END,
      CASE WHEN relkind <> 'S' THEN 'columns (' || array_to_string(array(SELECT CASE WHEN own THEN
          concat(attname, ' ', format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN ' not null' END) ELSE attname::text END
        FROM pg_attribute WHERE attrelid = rel.oid AND attnum > 0 AND NOT attisdropped ORDER BY attname), ', ') || ')' END,
      CASE WHEN own AND relkind IN ('v', 'm') THEN 'definition ' || md5(pg_get_viewdef(rel.oid)) END, 'comment ' || comment)
    FROM rel LEFT JOIN commented ON classid = 'pg_class'::regclass AND objid = rel.oid
  UNION ALL SELECT kind, name, relation, extension, 'definition ' || md5(definition) FROM part
  UNION ALL SELECT kind, name, NULL, extension, concat_ws(', ', what, 'definition ' || md5(definition), 'comment ' || comment)
    FROM named LEFT JOIN member USING (classid, objid) LEFT JOIN commented USING (classid, objid)
  UNION ALL SELECT type, identity, NULL, extension, 'comment ' || comment
    FROM other LEFT JOIN member USING (classid, objid) LEFT JOIN commented USING (classid, objid),
      pg_identify_object(classid, objid, 0) WHERE objid >= 16384 AND identity IS NOT NULL
)
SELECT kind, name, coalesce(relation, ''), coalesce(extension, ''), coalesce(what, '') FROM found
ORDER BY kind COLLATE "C", name COLLATE "C", extension COLLATE "C"
