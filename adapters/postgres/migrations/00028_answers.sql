-- When the agent of a server last answered, to a minute, and since when it does not.
--
-- Since when the schedule of a database holds; NULL: since its creation. A host of the version before that changes a schedule leaves
-- it as it is.

-- +goose Up

ALTER TABLE servers
    ADD COLUMN answered_at timestamptz,
    ADD COLUMN away_since timestamptz;

ALTER TABLE databases ADD COLUMN schedule_since timestamptz;
