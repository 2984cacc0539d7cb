-- Fair claims of operations, and claims on the things that they use. Hosts of the version before insert operations without a server, and claim without lanes.

-- +goose Up

-- In the order in which hosts lock them.
LOCK TABLE databases IN SHARE ROW EXCLUSIVE MODE;

-- The kinds are those that the hosts register.
ALTER TABLE operations DROP CONSTRAINT operations_kind_check;

ALTER TABLE operations ADD COLUMN server_id uuid;
UPDATE operations o SET server_id = d.server_id FROM databases d
    WHERE d.id = o.database_id AND o.status IN ('queued', 'running');

-- A lane is the open operations of one account, on one server, of one kind. None of them is due before due_at; turn is higher
-- the later the lane was last served. Whoever makes an operation due earlier holds the lane until the end of the transaction, so
-- that a claim that finds the lane exhausted, and holds it too, sees every operation.
CREATE SEQUENCE operation_turns;
CREATE TABLE operation_lanes (
    account_id uuid,
    server_id  uuid,
    kind       text,
    due_at     timestamptz NOT NULL,
    turn       bigint NOT NULL,
    PRIMARY KEY (account_id, server_id, kind)
) WITH (fillfactor = 50);
INSERT INTO operation_lanes
    SELECT account_id, server_id, kind, min(greatest(not_before, lease_until)), 0 FROM operations
    WHERE status IN ('queued', 'running') GROUP BY account_id, server_id, kind;

-- What has been due longest in each lane: an operation is due since it may be claimed and nobody holds it.
CREATE INDEX operations_due ON operations (account_id, server_id, kind, greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('queued', 'running');

-- What an operation uses beside its own database. Only the rows of open operations count.
CREATE TABLE operation_uses (
    operation_id uuid REFERENCES operations,
    database_id  uuid,
    backup       text,
    exclusive    boolean NOT NULL,
    PRIMARY KEY (operation_id, database_id, backup)
);
CREATE INDEX operation_uses_of_database ON operation_uses (database_id);

-- +goose StatementBegin
CREATE FUNCTION operation_placed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT d.server_id INTO NEW.server_id FROM databases d WHERE d.id = NEW.database_id;
    RETURN NEW;
END $$;

CREATE FUNCTION operation_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO operation_lanes AS l
        VALUES (NEW.account_id, NEW.server_id, NEW.kind, greatest(NEW.not_before, NEW.lease_until), 0)
        ON CONFLICT (account_id, server_id, kind) DO UPDATE SET due_at = least(l.due_at, excluded.due_at);
    RETURN NULL;
END $$;

CREATE FUNCTION database_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE operations o SET server_id = NEW.server_id
        WHERE o.database_id = NEW.id AND o.status IN ('queued', 'running');
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER operation_placed BEFORE INSERT ON operations FOR EACH ROW
    WHEN (NEW.server_id IS NULL) EXECUTE FUNCTION operation_placed();
CREATE TRIGGER operation_added AFTER INSERT ON operations FOR EACH ROW
    WHEN (NEW.status IN ('queued', 'running')) EXECUTE FUNCTION operation_due();
CREATE TRIGGER operation_due AFTER UPDATE ON operations FOR EACH ROW
    WHEN (NEW.status IN ('queued', 'running') AND
        (greatest(NEW.not_before, NEW.lease_until) < greatest(OLD.not_before, OLD.lease_until)
            OR NEW.server_id IS DISTINCT FROM OLD.server_id))
    EXECUTE FUNCTION operation_due();
CREATE TRIGGER database_moved AFTER UPDATE OF server_id ON databases FOR EACH ROW
    WHEN (NEW.server_id IS DISTINCT FROM OLD.server_id) EXECUTE FUNCTION database_moved();
