-- Members and invitations.

-- +goose Up

-- No route made members before, so what stands here was written by hand; nobody knows when.
ALTER TABLE memberships ADD COLUMN created_at timestamptz NOT NULL DEFAULT 'epoch';
CREATE INDEX memberships_of_database ON memberships (database_id, created_at, id);

-- Empty: no password.
ALTER TABLE users ADD COLUMN password_hash text NOT NULL DEFAULT '';

-- Addresses are compared without regard to case. All hosts have always stored them in lower case, so this finds something only
-- where somebody wrote rows by hand. Then the oldest user keeps the address, and the others are found by none: they keep their
-- accounts and keys, and an invitation never reaches the wrong one. Which of them a person wants to be is for an operator to say,
-- who gives the others addresses of their own and takes email_shadowed back.
ALTER TABLE users ADD COLUMN email_shadowed boolean NOT NULL DEFAULT false;
UPDATE users u SET email_shadowed = true WHERE EXISTS (
    SELECT FROM users o
    WHERE lower(o.email COLLATE "C") = lower(u.email COLLATE "C") AND (o.created_at, o.id) < (u.created_at, u.id));
CREATE UNIQUE INDEX users_email_any_case ON users (lower(email COLLATE "C")) WHERE NOT email_shadowed;

CREATE TABLE invitations (
    id          uuid PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES accounts,
    database_id uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    email       text NOT NULL,
    role        text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
    token_hash  bytea NOT NULL CHECK (length(token_hash) = 32),
    status      text NOT NULL CHECK (status IN ('open', 'accepted', 'revoked', 'expired')),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    CONSTRAINT invitations_end CHECK ((ended_at IS NOT NULL) = (status <> 'open')),
    CONSTRAINT invitations_token_unique UNIQUE (token_hash)
);
CREATE UNIQUE INDEX invitations_address_unique ON invitations (database_id, email) WHERE status IN ('open', 'expired');
CREATE INDEX invitations_of_database ON invitations (database_id, created_at, id);
CREATE INDEX invitations_overdue ON invitations (expires_at) WHERE status = 'open';
CREATE INDEX invitations_ended ON invitations (ended_at) WHERE ended_at IS NOT NULL;
