-- Webhook endpoints, and events on their way to them.

-- +goose Up

-- NULL until deliveries were made of the event, true from then on. What was stored before there were endpoints has nobody to
-- go to, so it counts as taken.
ALTER TABLE outbox_events ADD COLUMN taken boolean DEFAULT true;
ALTER TABLE outbox_events ALTER COLUMN taken DROP DEFAULT;
CREATE INDEX outbox_events_waiting ON outbox_events (created_at, id) WHERE taken IS NULL;

-- An endpoint outlives the database that it is bound to, so it does not refer to it: the event of the deletion still goes to
-- it, with all its attempts, and so does what follows a recovery. It never comes to mean all databases.
CREATE TABLE webhook_endpoints (
    id                   uuid PRIMARY KEY,
    account_id           uuid NOT NULL REFERENCES accounts,
    database_id          uuid,
    url                  text NOT NULL,
    sealed_secret        bytea NOT NULL,
    consecutive_failures integer NOT NULL CHECK (consecutive_failures >= 0),
    disabled_at          timestamptz,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX webhook_endpoints_of_account ON webhook_endpoints (account_id, created_at, id);

-- The turn of an endpoint is higher the later it was last served. A claim changes its endpoint's row, so that a second claim
-- for the same endpoint never counts without the first.
CREATE SEQUENCE webhook_turns;
CREATE TABLE webhook_lanes (
    webhook_id uuid PRIMARY KEY REFERENCES webhook_endpoints,
    turn       bigint NOT NULL
) WITH (fillfactor = 50);

-- The event may be a test, which is in no outbox.
CREATE TABLE webhook_deliveries (
    id             uuid PRIMARY KEY,
    webhook_id     uuid NOT NULL REFERENCES webhook_endpoints,
    account_id     uuid NOT NULL REFERENCES accounts,
    event_id       uuid NOT NULL,
    event          text NOT NULL,
    body           json NOT NULL,
    status         text NOT NULL CHECK (status IN ('pending', 'delivering', 'delivered', 'failed')),
    attempts_used  integer NOT NULL CHECK (attempts_used >= 0),
    attempts_total integer NOT NULL CHECK (attempts_total >= attempts_used),
    created_at     timestamptz NOT NULL,
    finished_at    timestamptz,
    lease_owner    text NOT NULL,
    lease_epoch    bigint NOT NULL,
    lease_until    timestamptz,
    not_before     timestamptz NOT NULL,
    CONSTRAINT webhook_deliveries_event_unique UNIQUE (event_id, webhook_id)
);
-- What has been due longest at each endpoint: a delivery is due since it may be claimed and nobody holds it.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('pending', 'delivering');
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (webhook_id, lease_until) WHERE status = 'delivering';

CREATE TABLE webhook_attempts (
    delivery_id  uuid REFERENCES webhook_deliveries,
    number       integer CHECK (number > 0),
    webhook_id   uuid NOT NULL,
    at           timestamptz NOT NULL,
    took_ns      bigint NOT NULL,
    status_code  integer NOT NULL,
    error        text NOT NULL,
    next_attempt timestamptz,
    CONSTRAINT webhook_attempts_once PRIMARY KEY (delivery_id, number)
);
CREATE INDEX webhook_attempts_of_endpoint ON webhook_attempts (webhook_id, at, delivery_id, number);
