-- The keys that encrypt stored secrets, by their fingerprints, and which host has which. Hosts of the version before know neither.

-- +goose Up

CREATE TABLE keyring_keys (
    fingerprint text PRIMARY KEY,
    status      text NOT NULL CHECK (status IN ('staged', 'primary', 'old', 'retired')),
    since       timestamptz NOT NULL,
    resealed_at timestamptz
);
CREATE UNIQUE INDEX keyring_keys_one ON keyring_keys (status) WHERE status IN ('staged', 'primary');

CREATE TABLE keyring_hosts (
    id      uuid PRIMARY KEY,
    name    text NOT NULL,
    keys    text[] NOT NULL,
    seals   text NOT NULL,
    seen_at timestamptz NOT NULL
);

-- Who decides over the ring locks its one row.
CREATE TABLE keyring_turn (one boolean PRIMARY KEY CHECK (one));
