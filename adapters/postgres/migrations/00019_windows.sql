-- The requests of some classes are counted exactly: "used" are the times, in microseconds, at which those of the last period were
-- let in. tat is then the end of the last one's period, so that a bucket is swept as ever. Hosts of the version before have no
-- route of such a class.

-- +goose Up

ALTER TABLE rate_buckets ADD COLUMN used bigint[] NOT NULL DEFAULT '{}';
