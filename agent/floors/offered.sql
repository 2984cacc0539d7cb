-- The trusted procedural languages that a server offers, and the extensions that bring them. What an extension's control file says
-- of trust shows in a view, but not whether it brings a language: that is in its scripts. What is written in other than ASCII
-- characters is escaped, since a script may be in any encoding.
WITH share AS (
    SELECT setting AS folder FROM pg_catalog.pg_config() WHERE name = 'SHAREDIR'
), trusted AS MATERIALIZED (
    SELECT DISTINCT v.name, share.folder
    FROM pg_catalog.pg_available_extension_versions v, share
    WHERE v.trusted AND v.name <> 'plpgsql'
), located AS MATERIALIZED (
    SELECT name, CASE WHEN directory LIKE '/%' THEN directory ELSE folder || '/' || coalesce(directory, 'extension') END AS folder
    FROM (
        SELECT name, folder, pg_catalog.substring(
            pg_catalog.encode(pg_catalog.pg_read_binary_file(folder || '/extension/' || name || '.control'), 'escape'),
            '(?n)^\s*directory\s*=\s*''([^'']*)''') AS directory
        FROM trusted) controls
), scripts AS MATERIALIZED (
    SELECT l.name, l.folder || '/' || script AS path
    FROM located l, pg_catalog.pg_ls_dir(l.folder) AS script
    WHERE pg_catalog.starts_with(script, l.name || '--') AND script LIKE '%.sql'
)
SELECT DISTINCT pg_catalog.lower(created.words[1]) AS language, s.name::text AS extension
FROM scripts s, pg_catalog.regexp_matches(
    pg_catalog.encode(pg_catalog.pg_read_binary_file(s.path), 'escape'),
    '\mcreate\s+(?:or\s+replace\s+)?trusted\s+(?:procedural\s+)?language\s+"?([^"\s;]+)', 'gi') AS created (words)
ORDER BY 1, 2
