-- Defaults for columns that came later than their tables.
--
-- Migrations run first, while hosts of the previous version still run: their statements have to work on the new schema. So
-- a migration expands, and what no longer fits is contracted by one of a later release:
--
--   - A new column of an existing table may be null, or has a default that stays. 00003 took its defaults away again, and until
--     the last old host was replaced every creation of a database failed.
--   - A column, table or constraint that the previous version needs is neither dropped, renamed nor narrowed.
--   - A migration that has landed is never edited.
--
-- TestPreviousStatements replays what the previous version sends; "make record-statements" records it.

-- +goose Up

ALTER TABLE databases
    ALTER COLUMN role_generation SET DEFAULT 0,
    ALTER COLUMN role_ordinal SET DEFAULT 0,
    ALTER COLUMN roles_barred SET DEFAULT false;
