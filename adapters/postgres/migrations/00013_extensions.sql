-- What the trial of an extension on a database server has shown: the last one of each. It proves nothing about another version of
-- the extension or of PostgreSQL.

-- +goose Up

CREATE TABLE extension_qualifications (
    server_id      uuid REFERENCES servers,
    extension      text,
    version        text NOT NULL,
    server_version text NOT NULL,
    qualified      boolean NOT NULL,
    message        text NOT NULL,
    at             timestamptz NOT NULL,
    PRIMARY KEY (server_id, extension)
);
