WITH own(class, id, owner, kind, acl) AS (
  SELECT 'pg_namespace'::regclass, oid, nspowner, 'n', nspacl FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'
  UNION ALL SELECT 'pg_class'::regclass, oid, relowner, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END, relacl FROM pg_class
  UNION ALL SELECT 'pg_proc'::regclass, oid, proowner, 'f', proacl FROM pg_proc
  UNION ALL SELECT 'pg_type'::regclass, oid, typowner, 'T', typacl FROM pg_type
  UNION ALL SELECT 'pg_operator'::regclass, oid, oprowner, '', NULL FROM pg_operator
  UNION ALL SELECT 'pg_opclass'::regclass, oid, opcowner, '', NULL FROM pg_opclass
  UNION ALL SELECT 'pg_opfamily'::regclass, oid, opfowner, '', NULL FROM pg_opfamily
  UNION ALL SELECT 'pg_collation'::regclass, oid, collowner, '', NULL FROM pg_collation
  UNION ALL SELECT 'pg_conversion'::regclass, oid, conowner, '', NULL FROM pg_conversion
  UNION ALL SELECT 'pg_ts_config'::regclass, oid, cfgowner, '', NULL FROM pg_ts_config
  UNION ALL SELECT 'pg_ts_dict'::regclass, oid, dictowner, '', NULL FROM pg_ts_dict
  UNION ALL SELECT 'pg_statistic_ext'::regclass, oid, stxowner, '', NULL FROM pg_statistic_ext
  UNION ALL SELECT 'pg_publication'::regclass, oid, pubowner, '', NULL FROM pg_publication
  UNION ALL SELECT 'pg_extension'::regclass, oid, extowner, '', NULL FROM pg_extension
  UNION ALL SELECT 'pg_foreign_server'::regclass, oid, srvowner, 'S', srvacl FROM pg_foreign_server
), line(line) AS (
  SELECT format('%s %s: %s %s', i.type, i.identity, owner::regrole,
    CASE WHEN kind <> '' THEN array(SELECT a::text FROM unnest(coalesce(acl, acldefault(kind::"char", owner))) a ORDER BY 1) END)
  FROM own, pg_identify_object(class, id, 0) i WHERE id >= 16384 OR class = 'pg_namespace'::regclass AND i.identity = 'public'
  UNION ALL SELECT format('large object %s: %s %s', oid, lomowner::regrole,
    array(SELECT a::text FROM unnest(coalesce(lomacl, acldefault('L', lomowner))) a ORDER BY 1)) FROM pg_largeobject_metadata
  UNION ALL SELECT format('column %s.%s: %s', attrelid::regclass, attname, array(SELECT a::text FROM unnest(attacl) a ORDER BY 1))
    FROM pg_attribute WHERE attrelid >= 16384 AND attacl <> '{}' AND NOT attisdropped
  UNION ALL SELECT format('defaults of %s in %s for %s: %s', defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype,
    array(SELECT a::text FROM unnest(defaclacl) a ORDER BY 1)) FROM pg_default_acl
  UNION ALL SELECT format('policy %s on %s: %s', polname, polrelid::regclass,
    array(SELECT CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END FROM unnest(polroles) r ORDER BY 1)) FROM pg_policy
  UNION ALL SELECT format('comment on %s: %s', pg_describe_object(classoid, objoid, objsubid), description)
    FROM pg_description WHERE objoid >= 16384 OR classoid = 'pg_namespace'::regclass
)
SELECT line FROM line WHERE line !~ '^(toast|index|composite type of).* pg_toast' ORDER BY line COLLATE "C"
