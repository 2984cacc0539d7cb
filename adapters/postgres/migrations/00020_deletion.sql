-- Deleted databases. The record of one stays, with its name and its place on the server, and so does everything that belongs to
-- it. The tombstone says what it was and until when it can be recovered; its backup is named twice, here and in "backups", and
-- only where both agree is it the deletion's.

-- +goose Up

ALTER TABLE databases DROP CONSTRAINT databases_status_check;
ALTER TABLE databases ADD CONSTRAINT databases_status_check CHECK (status IN
    ('creating', 'active', 'stopped', 'deleting', 'error', 'deleted', 'purging'));

-- "members", "keys" and "allowlist" count the access snapshot as it was made. A recovered database keeps its tombstone, which then
-- says by which operation it was recovered, until it is deleted again.
CREATE TABLE tombstones (
    database_id     uuid PRIMARY KEY REFERENCES databases ON DELETE CASCADE,
    operation_id    uuid NOT NULL,
    recovery_id     uuid,
    status_before   text NOT NULL CHECK (status_before IN ('active', 'stopped', 'error')),
    deleted_at      timestamptz NOT NULL,
    purge_after     timestamptz NOT NULL,
    filename        text COLLATE "C" NOT NULL,
    checksum_sha256 text NOT NULL,
    members         integer NOT NULL,
    keys            integer NOT NULL,
    allowlist       integer NOT NULL,
    CONSTRAINT tombstones_binding CHECK ((filename = '') = (checksum_sha256 = ''))
);
CREATE INDEX tombstones_due ON tombstones (purge_after, database_id);

-- Who was a member, whether or not there is such a user any more.
CREATE TABLE tombstone_members (
    database_id uuid REFERENCES tombstones ON DELETE CASCADE,
    user_id     uuid,
    PRIMARY KEY (database_id, user_id)
);

-- Which keys were bound to the database. A key that is replaced gets another ID, and stays bound.
CREATE TABLE tombstone_keys (
    database_id uuid REFERENCES tombstones ON DELETE CASCADE,
    key_id      text COLLATE "C" REFERENCES api_keys ON UPDATE CASCADE,
    PRIMARY KEY (database_id, key_id)
);
CREATE INDEX tombstone_keys_of_key ON tombstone_keys (key_id);
