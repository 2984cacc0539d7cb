-- Hosts lease stretches of a rate bucket and give back what they did not use. "free" is what was given back and lies before tat,
-- "granted" what the last request for a lease was granted: it is read by the statement that wrote it, as "taken" is by that of
-- hosts of the version before. Those move tat alone, which the new ones take for used.

-- +goose Up

ALTER TABLE rate_buckets
    ADD COLUMN free    int8multirange NOT NULL DEFAULT '{}',
    ADD COLUMN granted int8range NOT NULL DEFAULT 'empty';
