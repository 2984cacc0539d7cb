-- Placement by connections, and servers that are passed over for a while. Hosts of the version before insert servers without
-- these columns.

-- +goose Up

ALTER TABLE servers
    ADD COLUMN connections   integer NOT NULL DEFAULT 0 CHECK (connections >= 0),
    ADD COLUMN avoided_until timestamptz;
