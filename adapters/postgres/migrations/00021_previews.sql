-- What databases are as previews: each belongs to a CI namespace and to a ref of its own, and has a lease. "ttl_hours" and
-- "scheduled_backup" are the choices of the request that made it; what has been changed since is not in them. "end_at" is when the
-- service tries to delete a preview whose lease has ended, "ending_since" when it began to.

-- +goose Up

CREATE TABLE previews (
    database_id      uuid PRIMARY KEY REFERENCES databases ON DELETE CASCADE,
    namespace_id     uuid NOT NULL REFERENCES ci_namespaces,
    ref              text COLLATE "C" NOT NULL,
    use              integer NOT NULL CHECK (use > 0),
    ttl_hours        integer NOT NULL CHECK (ttl_hours BETWEEN 1 AND 72),
    scheduled_backup text NOT NULL CHECK (scheduled_backup IN ('none', 'daily')),
    lease_status     text NOT NULL CHECK (lease_status IN ('active', 'expired', 'deleting', 'deleted', 'recovering')),
    lease_generation bigint NOT NULL CHECK (lease_generation > 0),
    expires_at       timestamptz NOT NULL,
    end_at           timestamptz CHECK ((end_at IS NOT NULL) = (lease_status = 'expired')),
    failures         integer NOT NULL CHECK (failures >= 0),
    ending_since     timestamptz CHECK (ending_since IS NULL OR lease_status = 'deleting'),
    CONSTRAINT previews_use_unique UNIQUE (namespace_id, ref, use)
);
CREATE UNIQUE INDEX previews_one_live ON previews (namespace_id, ref) WHERE lease_status <> 'deleted';
CREATE INDEX previews_active ON previews (expires_at) WHERE lease_status = 'active';
CREATE INDEX previews_expired ON previews (end_at) WHERE lease_status = 'expired';
CREATE INDEX previews_ending ON previews (database_id) WHERE ending_since IS NOT NULL;
