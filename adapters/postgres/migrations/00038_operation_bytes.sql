-- How many bytes of the part of an operation that is under way are done; a total of 0 where that is not known.

-- +goose Up

ALTER TABLE operations
    ADD COLUMN bytes_done bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes_total bigint NOT NULL DEFAULT 0;
