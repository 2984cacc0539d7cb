-- Keys that sign restore certificates. A retired key keeps its public part for ever, and has no private one.

-- +goose Up

CREATE TABLE certificate_keys (
    id          uuid PRIMARY KEY,
    public_key  bytea NOT NULL CHECK (length(public_key) = 32),
    sealed_seed bytea,
    created_at  timestamptz NOT NULL,
    retired_at  timestamptz,
    CONSTRAINT certificate_keys_retired CHECK ((retired_at IS NULL) = (sealed_seed IS NOT NULL))
);
CREATE UNIQUE INDEX certificate_keys_one_signs ON certificate_keys ((retired_at IS NULL)) WHERE retired_at IS NULL;
