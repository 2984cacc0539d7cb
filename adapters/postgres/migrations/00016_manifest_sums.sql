-- A backup's record binds its manifest, which says what a restore of the file must be: its SHA-256 in lower-case hex. Hosts and agents
-- of earlier versions leave it empty.

-- +goose Up

ALTER TABLE backups ADD COLUMN manifest_sha256 text NOT NULL DEFAULT '';
