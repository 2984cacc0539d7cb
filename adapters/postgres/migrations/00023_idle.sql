-- Rounds that look for what is due pass deleted databases by without looking at each. "held" says of a backup with a retention that
-- its database is deleted, so that it is kept until the purge. The tombstone is stored and withdrawn with it; of what was deleted
-- before, each round looks at all until it is purged.

-- +goose Up

ALTER TABLE backups ADD COLUMN held boolean NOT NULL DEFAULT false;
DROP INDEX backups_expiring;
CREATE INDEX backups_expiring ON backups (expires_at) WHERE expires_at IS NOT NULL AND NOT held;

DROP INDEX databases_backup_due;
CREATE INDEX databases_backup_due ON databases (next_backup_at)
    WHERE next_backup_at IS NOT NULL AND status IN ('active', 'stopped');
