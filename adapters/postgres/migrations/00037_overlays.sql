-- The overlay of a database with a single login, which its additional roles stand on. Hosts of the version before insert and save
-- databases without these columns.

-- +goose Up

ALTER TABLE databases
    ADD COLUMN overlay_id         uuid,
    ADD COLUMN overlay_status     text   NOT NULL DEFAULT 'none' CHECK (overlay_status IN ('none', 'reserved', 'active')),
    ADD COLUMN overlay_generation bigint NOT NULL DEFAULT 0 CHECK (overlay_generation >= 0),
    ADD CONSTRAINT databases_overlay CHECK ((overlay_status = 'none') = (overlay_id IS NULL));
