-- The bounds of mails count an address without its tag, as mail.Mailbox has it. Hosts of the version before have no index for
-- their count any more; they scan a week's mails.

-- +goose Up

CREATE INDEX mails_of_mailbox ON mails (lower(regexp_replace(recipient, '^([^@+]+)[+][^@]*', '\1')), created_at);
DROP INDEX mails_of_recipient;
