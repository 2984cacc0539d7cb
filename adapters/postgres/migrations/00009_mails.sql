-- Invitation mails on their way.

-- +goose Up

-- The token is there until the mail was sent or given up. An invitation's row may go before its mail's; a database takes both
-- with it.
CREATE TABLE mails (
    id               uuid PRIMARY KEY,
    invitation_id    uuid NOT NULL,
    account_id       uuid NOT NULL REFERENCES accounts,
    database_id      uuid NOT NULL REFERENCES databases ON DELETE CASCADE,
    recipient        text NOT NULL,
    inviter          text NOT NULL,
    database_display text NOT NULL,
    role             text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
    expires_at       timestamptz NOT NULL,
    sealed_token     bytea,
    status           text NOT NULL CHECK (status IN ('pending', 'sending', 'sent', 'failed', 'withdrawn')),
    attempts         integer NOT NULL CHECK (attempts >= 0),
    created_at       timestamptz NOT NULL,
    finished_at      timestamptz,
    lease_owner      text NOT NULL,
    lease_epoch      bigint NOT NULL,
    lease_until      timestamptz,
    not_before       timestamptz NOT NULL,
    CONSTRAINT mails_token_until_final CHECK ((sealed_token IS NOT NULL) = (status IN ('pending', 'sending'))),
    CONSTRAINT mails_finished_when_final CHECK ((finished_at IS NULL) = (status IN ('pending', 'sending')))
);
CREATE INDEX mails_of_invitation ON mails (invitation_id);
CREATE INDEX mails_of_database ON mails (database_id);
CREATE INDEX mails_recent ON mails (account_id, created_at);
CREATE INDEX mails_of_recipient ON mails (lower(recipient), created_at);
-- What has been due longest of each account: a mail is due since it may be claimed and nobody holds it.
CREATE INDEX mails_due ON mails (account_id, greatest(not_before, lease_until), created_at, id)
    WHERE status IN ('pending', 'sending');
CREATE INDEX mails_held ON mails (account_id, lease_until) WHERE status = 'sending';
CREATE INDEX mails_ended ON mails (finished_at) WHERE finished_at IS NOT NULL;

-- The turn of an account is higher the later it was last served. A claim changes its account's row, so that a second claim for
-- the same account never counts without the first.
CREATE SEQUENCE mail_turns;
CREATE TABLE mail_lanes (
    account_id uuid PRIMARY KEY REFERENCES accounts,
    turn       bigint NOT NULL
) WITH (fillfactor = 50);
