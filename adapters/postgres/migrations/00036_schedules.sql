-- Since when the schedule of a database holds; NULL: since its creation. A host of the version before that changes a schedule leaves
-- it as it is.

-- +goose Up

ALTER TABLE databases ADD COLUMN schedule_since timestamptz;
