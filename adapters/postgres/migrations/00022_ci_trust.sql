-- Namespaces can be revoked, and CI keys can end by time: those that an OIDC token of a CI system was exchanged for, by a trust of the
-- namespace. A trust that is removed leaves its ID with the keys. Of an exchanged token only a digest is kept, until its time is over.
--
-- CI keys reach no database as such, whatever their scope says; so it says that they reach the selected ones, of which they have none.

-- +goose Up

ALTER TABLE ci_namespaces ADD COLUMN revoked_at timestamptz;

ALTER TABLE api_keys
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN trust_id uuid CHECK (trust_id IS NULL OR kind = 'ci' AND expires_at IS NOT NULL),
    ADD COLUMN issuer text NOT NULL DEFAULT '',
    ADD COLUMN subject text NOT NULL DEFAULT '';
UPDATE api_keys SET scope = 'selected' WHERE kind = 'ci';
CREATE INDEX api_keys_of_namespace ON api_keys (namespace_id, created_at, id) WHERE namespace_id IS NOT NULL;
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE trust_id IS NOT NULL;

CREATE TABLE ci_trusts (
    id           uuid PRIMARY KEY,
    namespace_id uuid NOT NULL REFERENCES ci_namespaces,
    issuer       text NOT NULL,
    audience     text NOT NULL,
    subject      text NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT ci_trusts_unique UNIQUE (namespace_id, issuer, audience, subject)
);

CREATE TABLE ci_spent_tokens (
    mark  bytea PRIMARY KEY CHECK (length(mark) = 32),
    until timestamptz NOT NULL
);
CREATE INDEX ci_spent_tokens_until ON ci_spent_tokens (until);

CREATE INDEX audit_entries_of_account ON audit_entries (account_id, at, id) WHERE database_id IS NULL;
