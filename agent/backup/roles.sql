-- Every privilege that was granted or revoked in this database by name, the database itself included: kind, object, grantor,
-- grantee, privilege, grant option. Objects of PostgreSQL itself are left out, and the logins of the agent's jobs.
WITH ns AS (
  SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
), acl(kind, object, items) AS (
  SELECT 'database', quote_ident(datname), datacl FROM pg_database WHERE datname = current_database()
  UNION ALL SELECT 'schema', quote_ident(nspname), nspacl FROM pg_namespace JOIN ns USING (oid, nspname)
  UNION ALL SELECT CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, format('%I.%I', nspname, relname), relacl
    FROM pg_class JOIN ns ON ns.oid = relnamespace
  UNION ALL SELECT 'column', format('%I.%I.%I', nspname, relname, attname), attacl
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN ns ON ns.oid = relnamespace WHERE NOT attisdropped
  UNION ALL SELECT 'function', format('%I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(p.oid)), proacl
    FROM pg_proc p JOIN ns ON ns.oid = pronamespace
  UNION ALL SELECT 'type', format('%I.%I', nspname, typname), typacl FROM pg_type JOIN ns ON ns.oid = typnamespace
  UNION ALL SELECT 'default', format('%I %s %s', pg_get_userbyid(defaclrole), defaclobjtype, coalesce(quote_ident(nspname), '')),
    defaclacl FROM pg_default_acl LEFT JOIN pg_namespace n ON n.oid = defaclnamespace
)
SELECT kind, object, coalesce(pg_get_userbyid(nullif(grantor, 0)), ''),
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END,
  array_agg(privilege_type ORDER BY privilege_type),
  coalesce(array_agg(privilege_type ORDER BY privilege_type) FILTER (WHERE is_grantable), '{}')
FROM acl, aclexplode(items)
WHERE grantee <> ALL (ARRAY(SELECT oid FROM pg_roles WHERE rolname ~ '^(dump|extension)_[0-9a-f]{32}$'))
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
