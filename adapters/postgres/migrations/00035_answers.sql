-- When the agent of a server last answered, to a minute, and since when it does not.

-- +goose Up

ALTER TABLE servers
    ADD COLUMN answered_at timestamptz,
    ADD COLUMN away_since timestamptz;
