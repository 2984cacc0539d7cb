-- What has been over for long is deleted, the oldest first; see package retention of the core. Writers of a table wait while its
-- index is made, about a second for each million rows.

-- +goose Up

CREATE INDEX operations_ended ON operations (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at, resource_id);
CREATE INDEX role_changes_ended ON role_changes (ended_at, id) WHERE ended_at IS NOT NULL;

-- Whether an upload is for an operation that is about to be deleted.
CREATE INDEX uploads_of_operation ON uploads (operation_id) WHERE operation_id IS NOT NULL;
