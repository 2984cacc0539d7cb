-- The owners and grants of large objects, of which a sidecar knows nothing. Those that follow each other by OID and have the same
-- are together: one row for each grantor and grantee, and one without a grantee where all is as PostgreSQL makes it.
WITH marked AS (
  SELECT oid, lomowner, lomacl::text AS acl, (lomowner, lomacl::text) IS DISTINCT FROM
    (lag(lomowner) OVER (ORDER BY oid), lag(lomacl::text) OVER (ORDER BY oid)) AS begins
  FROM pg_largeobject_metadata
), numbered AS (
  SELECT *, count(*) FILTER (WHERE begins) OVER (ORDER BY oid) AS run FROM marked
), runs AS (
  SELECT min(oid) AS first, max(oid) AS last, lomowner, acl FROM numbered GROUP BY run, lomowner, acl
)
SELECT first, last, pg_get_userbyid(lomowner), coalesce(pg_get_userbyid(nullif(grantor, 0)), ''),
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END,
  coalesce(array_agg(privilege_type ORDER BY privilege_type) FILTER (WHERE privilege_type IS NOT NULL), '{}'),
  coalesce(array_agg(privilege_type ORDER BY privilege_type) FILTER (WHERE is_grantable), '{}')
FROM runs LEFT JOIN LATERAL aclexplode(nullif(acl, '{}')::aclitem[]) ON true
GROUP BY first, last, lomowner, grantor, grantee ORDER BY first, grantor, grantee
