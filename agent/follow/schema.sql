-- A mark of everything in a database that pg_dump would write, beside rows, large objects and the positions of sequences: a digest
-- of the rows of PostgreSQL's catalogs, without what changes by itself and without temporary things. $1 is a publication that does
-- not count.
WITH ns AS MATERIALIZED (
  SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_(temp|toast)' OR nspname = 'information_schema'
), rel AS MATERIALIZED (
  SELECT c.oid FROM pg_class c WHERE c.oid >= 16384 AND c.relnamespace NOT IN (SELECT oid FROM ns)
), every (kind, what) AS (
  SELECT 'class', concat_ws(' ', c.oid, relname, relnamespace, reltype, reloftype, relowner, relam, relkind, relpersistence,
      relnatts, relchecks, relrowsecurity, relforcerowsecurity, relispopulated, relreplident, relispartition, relacl, reloptions,
      relpartbound)
    FROM pg_class c JOIN rel USING (oid)
  UNION ALL SELECT 'attribute', concat_ws(' ', attrelid, attname, atttypid, attnum, attndims, atttypmod, attstorage,
      attcompression, attnotnull, atthasdef, attidentity, attgenerated, attisdropped, attislocal, attinhcount, attstattarget,
      attcollation, attacl, attoptions, attfdwoptions)
    FROM pg_attribute JOIN rel ON rel.oid = attrelid WHERE attnum > 0
  UNION ALL SELECT 'default', t::text FROM pg_attrdef t JOIN rel ON rel.oid = adrelid
  UNION ALL SELECT 'index', concat_ws(' ', indexrelid, indrelid, indisunique, indisprimary, indisexclusion, indimmediate,
      indisclustered, indisvalid, indisready, indislive, indisreplident, indkey, indcollation, indclass, indoption, indexprs, indpred)
    FROM pg_index JOIN rel ON rel.oid = indrelid
  UNION ALL SELECT 'constraint', t::text FROM pg_constraint t
    WHERE t.oid >= 16384 AND connamespace NOT IN (SELECT oid FROM ns)
  UNION ALL SELECT 'trigger', t::text FROM pg_trigger t JOIN rel ON rel.oid = tgrelid
  UNION ALL SELECT 'rule', t::text FROM pg_rewrite t JOIN rel ON rel.oid = ev_class
  UNION ALL SELECT 'policy', t::text FROM pg_policy t
  UNION ALL SELECT 'inheritance', t::text FROM pg_inherits t JOIN rel ON rel.oid = inhrelid
  UNION ALL SELECT 'partitioning', t::text FROM pg_partitioned_table t
  UNION ALL SELECT 'statistics', t::text FROM pg_statistic_ext t
  UNION ALL SELECT 'sequence', t::text FROM pg_sequence t JOIN rel ON rel.oid = seqrelid
  UNION ALL SELECT 'type', t::text FROM pg_type t WHERE t.oid >= 16384 AND typnamespace NOT IN (SELECT oid FROM ns)
  UNION ALL SELECT 'label', t::text FROM pg_enum t
  UNION ALL SELECT 'range', t::text FROM pg_range t WHERE rngtypid >= 16384
  UNION ALL SELECT 'function', t::text FROM pg_proc t WHERE t.oid >= 16384 AND pronamespace NOT IN (SELECT oid FROM ns)
  UNION ALL SELECT 'aggregate', t::text FROM pg_aggregate t WHERE aggfnoid::oid >= 16384
  UNION ALL SELECT 'operator', t::text FROM pg_operator t WHERE t.oid >= 16384
  UNION ALL SELECT 'operator class', t::text FROM pg_opclass t WHERE t.oid >= 16384
  UNION ALL SELECT 'operator family', t::text FROM pg_opfamily t WHERE t.oid >= 16384
  UNION ALL SELECT 'member of a family', t::text FROM pg_amop t WHERE t.oid >= 16384
  UNION ALL SELECT 'support of a family', t::text FROM pg_amproc t WHERE t.oid >= 16384
  UNION ALL SELECT 'collation', t::text FROM pg_collation t WHERE t.oid >= 16384
  UNION ALL SELECT 'conversion', t::text FROM pg_conversion t WHERE t.oid >= 16384
  UNION ALL SELECT 'cast', t::text FROM pg_cast t WHERE t.oid >= 16384
  UNION ALL SELECT 'transform', t::text FROM pg_transform t
  UNION ALL SELECT 'language', t::text FROM pg_language t
  UNION ALL SELECT 'access method', t::text FROM pg_am t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_config t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_config_map t WHERE mapcfg >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_dict t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_parser t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_template t WHERE t.oid >= 16384
  UNION ALL SELECT 'extension', t::text FROM pg_extension t
  UNION ALL SELECT 'event trigger', t::text FROM pg_event_trigger t
  UNION ALL SELECT 'foreign data', t::text FROM pg_foreign_data_wrapper t
  UNION ALL SELECT 'foreign data', t::text FROM pg_foreign_server t
  UNION ALL SELECT 'foreign data', t::text FROM pg_foreign_table t
  UNION ALL SELECT 'schema', t::text FROM pg_namespace t WHERE nspname !~ '^pg_(temp|toast)'
  UNION ALL SELECT 'default privileges', t::text FROM pg_default_acl t
  UNION ALL SELECT 'publication', t::text FROM pg_publication t WHERE pubname <> $1
  UNION ALL SELECT 'comment', t::text FROM pg_description t WHERE objoid >= 16384
    AND NOT EXISTS (SELECT FROM pg_class c WHERE classoid = 'pg_class'::regclass AND c.oid = objoid
      AND c.relnamespace IN (SELECT oid FROM ns))
  UNION ALL SELECT 'security label', t::text FROM pg_seclabel t
  UNION ALL SELECT 'comment of the database', t::text FROM pg_shdescription t
    WHERE classoid = 'pg_database'::regclass AND objoid = (SELECT oid FROM pg_database WHERE datname = current_database())
  UNION ALL SELECT 'privileges on the database', concat_ws(' ', grantor::regrole, grantee::regrole, privilege_type, is_grantable)
    FROM pg_database, aclexplode(datacl) WHERE datname = current_database()
      AND NOT EXISTS (SELECT FROM pg_roles WHERE oid = grantee AND rolname ~ '^(dump|ext|move)_[0-9a-f]{32}$')
  UNION ALL SELECT 'setting', concat_ws(' ', setrole::regrole, setconfig) FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
)
SELECT coalesce(jsonb_object_agg(kind, mark), '{}')::text FROM (
  SELECT kind, concat(count(*), ' ', sum(hashtextextended(what, 0)::numeric)) AS mark FROM every GROUP BY kind) digests
