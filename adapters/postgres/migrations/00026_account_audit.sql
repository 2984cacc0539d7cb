-- An account's log is read together with that of its databases, and old entries of every log are found by their time.
-- Writers of the log wait while its indexes are made; readers do not.
--
-- An API key of an account may have an end, and be good in some networks only: CIDR blocks with a blank between them. A host of the
-- version before knows the end, and lets a key in from everywhere.

-- +goose Up

CREATE INDEX audit_entries_by_account ON audit_entries (account_id, at, id) WHERE account_id IS NOT NULL;
CREATE INDEX audit_entries_of_installation ON audit_entries (at, id) WHERE account_id IS NULL AND database_id IS NULL;
CREATE INDEX audit_entries_by_age ON audit_entries (at, id);
-- After all that takes long: readers of the log wait from here on.
DROP INDEX audit_entries_of_account;

ALTER TABLE api_keys ADD COLUMN networks text NOT NULL DEFAULT '' CHECK (kind = 'account' OR networks = '');
