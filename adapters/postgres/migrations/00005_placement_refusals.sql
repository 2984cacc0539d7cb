-- Placement by connections, servers that are passed over for a while, and changes of logins that a server refuses for good.
-- Hosts of the version before insert without these columns.

-- +goose Up

ALTER TABLE servers
    ADD COLUMN connections   integer NOT NULL DEFAULT 0 CHECK (connections >= 0),
    ADD COLUMN avoided_until timestamptz;

ALTER TABLE role_changes ADD COLUMN refusal text NOT NULL DEFAULT '';
