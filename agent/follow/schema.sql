-- A mark of everything in a database that pg_dump would write, beside rows, large objects and the positions of sequences: a digest
-- of the rows of PostgreSQL's catalogs, without what changes by itself and without temporary things. $1 is a publication that does
-- not count. An index has its name in the place of its number, and its expressions have no places, as REINDEX CONCURRENTLY changes
-- both. What PostgreSQL makes of a partition by itself, as of its siblings, is of the kind "partition", and whatever has been
-- granted of the kind "privileges".
WITH ns AS MATERIALIZED (
  SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_(temp|toast)' OR nspname = 'information_schema'
), rel AS MATERIALIZED (
  SELECT c.oid, CASE WHEN relispartition THEN 'partition' END AS partition,
    CASE WHEN relkind IN ('i', 'I') THEN concat(relnamespace, '.', relname) ELSE c.oid::text END AS mark
  FROM pg_class c WHERE c.oid >= 16384 AND c.relnamespace NOT IN (SELECT oid FROM ns)
), every (kind, what) AS (
  SELECT coalesce(rel.partition, 'class'), concat_ws(' ', rel.mark, relname, relnamespace, reltype, reloftype, relowner, relam,
      relkind, relpersistence, relnatts, relchecks, relrowsecurity, relforcerowsecurity, relispopulated, relreplident,
      relispartition, reloptions, relpartbound)
    FROM pg_class c JOIN rel USING (oid)
  UNION ALL SELECT coalesce(rel.partition, 'attribute'), concat_ws(' ', rel.mark, attname, atttypid, attnum, attndims, atttypmod,
      attstorage, attcompression, attnotnull, atthasdef, attidentity, attgenerated, attisdropped, attislocal, attinhcount,
      attstattarget, attcollation, attoptions, attfdwoptions)
    FROM pg_attribute JOIN rel ON rel.oid = attrelid WHERE attnum > 0
  UNION ALL SELECT CASE WHEN rel.partition IS NOT NULL AND regexp_replace(adbin::text, ':location -?[0-9]+', '', 'g') IN (
        SELECT regexp_replace(p.adbin::text, ':location -?[0-9]+', '', 'g') FROM pg_inherits
          JOIN pg_attrdef p ON p.adrelid = inhparent
        WHERE inhrelid = t.adrelid
      ) THEN rel.partition ELSE 'default' END, t::text
    FROM pg_attrdef t JOIN rel ON rel.oid = adrelid
  UNION ALL SELECT coalesce(rel.partition, 'index'), concat_ws(' ', rel.mark, indrelid, indisunique, indisprimary, indisexclusion,
      indimmediate, indisclustered, indisvalid, indisready, indislive, indisreplident, indkey, indcollation, indclass, indoption,
      regexp_replace(concat_ws(' ', indexprs, indpred), ':location -?[0-9]+', '', 'g'))
    FROM pg_index JOIN rel ON rel.oid = indexrelid
  UNION ALL SELECT CASE WHEN conparentid <> 0 OR conrelid <> 0 AND NOT conislocal THEN 'partition' ELSE 'constraint' END,
      (to_jsonb(t) - 'conindid')::text FROM pg_constraint t
    WHERE t.oid >= 16384 AND connamespace NOT IN (SELECT oid FROM ns)
  UNION ALL SELECT CASE WHEN tgisinternal OR tgparentid <> 0 THEN 'partition' ELSE 'trigger' END,
      (to_jsonb(t) - 'tgconstrindid')::text FROM pg_trigger t JOIN rel ON rel.oid = tgrelid
  UNION ALL SELECT 'rule', t::text FROM pg_rewrite t JOIN rel ON rel.oid = ev_class
  UNION ALL SELECT 'policy', t::text FROM pg_policy t
  UNION ALL SELECT coalesce(rel.partition, 'inheritance'), concat_ws(' ', rel.mark, parent.mark, inhseqno)
    FROM pg_inherits JOIN rel ON rel.oid = inhrelid JOIN rel parent ON parent.oid = inhparent
  UNION ALL SELECT 'partitioning', t::text FROM pg_partitioned_table t
  UNION ALL SELECT 'statistics', t::text FROM pg_statistic_ext t
  UNION ALL SELECT 'sequence', t::text FROM pg_sequence t JOIN rel ON rel.oid = seqrelid
  UNION ALL SELECT coalesce(rel.partition, 'type'), (to_jsonb(t) - 'typacl')::text
    FROM pg_type t LEFT JOIN pg_type row ON row.oid = t.typelem
      LEFT JOIN rel ON rel.oid = coalesce(nullif(t.typrelid, 0), row.typrelid)
    WHERE t.oid >= 16384 AND t.typnamespace NOT IN (SELECT oid FROM ns)
  UNION ALL SELECT 'label', t::text FROM pg_enum t
  UNION ALL SELECT 'range', t::text FROM pg_range t WHERE rngtypid >= 16384
  UNION ALL SELECT 'function', (to_jsonb(t) - 'proacl')::text FROM pg_proc t
    WHERE t.oid >= 16384 AND pronamespace NOT IN (SELECT oid FROM ns)
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
  UNION ALL SELECT 'language', (to_jsonb(t) - 'lanacl')::text FROM pg_language t
  UNION ALL SELECT 'access method', t::text FROM pg_am t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_config t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_config_map t WHERE mapcfg >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_dict t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_parser t WHERE t.oid >= 16384
  UNION ALL SELECT 'text search', t::text FROM pg_ts_template t WHERE t.oid >= 16384
  UNION ALL SELECT 'extension', t::text FROM pg_extension t
  UNION ALL SELECT 'event trigger', t::text FROM pg_event_trigger t
  UNION ALL SELECT 'foreign data', (to_jsonb(t) - 'fdwacl')::text FROM pg_foreign_data_wrapper t
  UNION ALL SELECT 'foreign data', (to_jsonb(t) - 'srvacl')::text FROM pg_foreign_server t
  UNION ALL SELECT 'foreign data', t::text FROM pg_foreign_table t
  UNION ALL SELECT 'schema', (to_jsonb(t) - 'nspacl')::text FROM pg_namespace t WHERE nspname !~ '^pg_(temp|toast)'
  UNION ALL SELECT 'privileges', concat_ws(' ', c.oid, relacl) FROM pg_class c JOIN rel USING (oid) WHERE relacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', attrelid, attnum, attacl)
    FROM pg_attribute JOIN rel ON rel.oid = attrelid WHERE attacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', oid, proacl) FROM pg_proc WHERE oid >= 16384 AND proacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', oid, typacl) FROM pg_type WHERE oid >= 16384 AND typacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', oid, lanacl) FROM pg_language WHERE lanacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', oid, fdwacl) FROM pg_foreign_data_wrapper WHERE fdwacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', oid, srvacl) FROM pg_foreign_server WHERE srvacl IS NOT NULL
  UNION ALL SELECT 'privileges', concat_ws(' ', oid, nspacl) FROM pg_namespace
    WHERE nspname !~ '^pg_(temp|toast)' AND nspacl IS NOT NULL
  UNION ALL SELECT 'default privileges', t::text FROM pg_default_acl t
  UNION ALL SELECT 'publication', t::text FROM pg_publication t WHERE pubname <> $1
  UNION ALL SELECT 'comment', concat_ws(' ', classoid, coalesce(rel.mark, objoid::text), objsubid, description)
    FROM pg_description LEFT JOIN rel ON classoid = 'pg_class'::regclass AND rel.oid = objoid WHERE objoid >= 16384
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
