-- An API key of an account may be good in some networks only: CIDR blocks with a blank between them. A host of the version before
-- lets it in from everywhere.

-- +goose Up

ALTER TABLE api_keys ADD COLUMN networks text NOT NULL DEFAULT '' CHECK (kind = 'account' OR networks = '');
