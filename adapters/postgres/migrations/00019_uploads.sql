-- Dumps that customers have announced to restore from, until their files are removed from the server. "operation_id" is the restore
-- that one is for, once it is complete.

-- +goose Up

CREATE TABLE uploads (
    id           uuid PRIMARY KEY,
    database_id  uuid NOT NULL REFERENCES databases,
    operation_id uuid REFERENCES operations,
    size_bytes   bigint NOT NULL CHECK (size_bytes > 0),
    sha256       text NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX uploads_of_database ON uploads (database_id);
