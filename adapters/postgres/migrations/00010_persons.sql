-- Who did something: the person beside the name of the key, which changes when the key is replaced. NULL where there is none, or
-- where a host of the version before stored the row: it does not name these columns. The log outlives people and databases, so
-- it does not refer to them.

-- +goose Up

-- In the order in which hosts lock them.
ALTER TABLE operations ADD COLUMN user_id uuid;
ALTER TABLE role_changes ADD COLUMN user_id uuid;
ALTER TABLE webhook_endpoints ADD COLUMN created_by uuid;
ALTER TABLE audit_entries ADD COLUMN user_id uuid;
