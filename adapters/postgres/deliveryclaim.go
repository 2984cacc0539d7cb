package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

const dueSince = "greatest(d.not_before, d.lease_until)"

// nextDelivery names CTEs whose last, fair, has a row for each endpoint that may be served now: the delivery that has been
// due longest, the endpoint's turn, and how many are leased. It jumps from endpoint to endpoint through the index, so it costs
// the same whether an endpoint has one delivery waiting or ten thousand. Its parameters are $1 now and $2 perEndpoint.
//
// Each jump and each count is a short scan of its own: such a scan marks the index entries of finished deliveries as dead, and
// no later one visits them. One scan over all that is leased would visit them until the next vacuum.
const nextDelivery = `
	WITH RECURSIVE first AS (
		(SELECT d.webhook_id, d.id, ` + dueSince + ` AS due FROM webhook_deliveries d
			WHERE d.` + undelivered + ` ORDER BY d.webhook_id, ` + dueSince + `, d.created_at, d.id LIMIT 1)
		UNION ALL
		SELECT n.webhook_id, n.id, n.due FROM first f CROSS JOIN LATERAL (
			SELECT d.webhook_id, d.id, ` + dueSince + ` AS due FROM webhook_deliveries d
			WHERE d.` + undelivered + ` AND d.webhook_id > f.webhook_id
			ORDER BY d.webhook_id, ` + dueSince + `, d.created_at, d.id LIMIT 1) n
	), fair AS MATERIALIZED (
		SELECT f.webhook_id, f.id, f.due, l.turn, b.leased
		FROM first f
		JOIN webhook_endpoints e ON e.id = f.webhook_id AND e.disabled_at IS NULL
		JOIN webhook_lanes l ON l.webhook_id = f.webhook_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS leased FROM webhook_deliveries h
			WHERE h.webhook_id = f.webhook_id AND h.status = 'delivering' AND h.lease_until > $1) b
		WHERE f.due <= $1 AND b.leased < $2
	)`

const fairest = " ORDER BY f.leased, f.turn, f.due, f.webhook_id LIMIT 1 FOR NO KEY UPDATE OF l"

var (
	// Claims for different endpoints do not wait for each other: SKIP LOCKED gives each of them a different lane. If the turn of a
	// lane has changed since it was read, the lane was served in the meantime and its counts are out of date: then nothing is
	// claimed, and the lane is kept locked.
	claimDelivery = pgdb.Written(nextDelivery + `, chosen AS (
			SELECT f.webhook_id, f.id, l.turn = f.turn AS counted FROM fair f JOIN webhook_lanes l ON l.webhook_id = f.webhook_id
			` + fairest + ` SKIP LOCKED
		), served AS (
			UPDATE webhook_lanes l SET turn = nextval('webhook_turns') FROM chosen c WHERE l.webhook_id = c.webhook_id
		), claimed AS (
			UPDATE webhook_deliveries t
			SET status = 'delivering', lease_owner = $3, lease_epoch = t.lease_epoch + 1, lease_until = $4
			FROM chosen c
			WHERE c.counted AND t.id = c.id AND t.` + undelivered + ` AND greatest(t.not_before, t.lease_until) <= $1
			RETURNING ` + deliveryTable.Row("t") + `
		)
		SELECT ` + deliveryTable.Row("t") + `, true AS claimed FROM claimed t
		UNION ALL
		SELECT ` + deliveryTable.Row("t") + `, false FROM webhook_deliveries t JOIN chosen c ON c.id = t.id
		WHERE NOT EXISTS (SELECT FROM claimed)`)
	// It waits for whoever serves the fairest lane.
	awaitLane = pgdb.Written(nextDelivery + `
		SELECT l.webhook_id FROM fair f JOIN webhook_lanes l ON l.webhook_id = f.webhook_id` + fairest)
	anyLane = pgdb.Written(nextDelivery + "SELECT webhook_id FROM fair LIMIT 1")
)

// maxLooks is how often a claim tries before its transaction is run again.
const maxLooks = 4

// ClaimNext claims in one statement. If that finds nothing, other claims may be in the way: then it waits for the lane that it
// would have taken, and tries again. It never waits for a lane while it holds one.
func (d deliveries) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perEndpoint int,
) (webhook.Delivery, error) {
	keepsLane := false
	for range maxLooks {
		row, err := pgdb.Locked[struct {
			webhook.Delivery
			Claimed bool `db:"claimed"`
		}](ctx, d.Session, claimDelivery, now, perEndpoint, owner, now.Add(hold))
		switch {
		case err == nil && row.Claimed || err != nil && !errors.Is(err, ports.ErrNoRow):
			return row.Delivery, err
		case err != nil && keepsLane:
			return webhook.Delivery{}, d.contended(ctx, now, perEndpoint)
		case err != nil:
			if _, err := pgdb.Locked[id.WebhookID](ctx, d.Session, awaitLane, now, perEndpoint); err != nil {
				return webhook.Delivery{}, err
			}
		}
		keepsLane = true
	}
	return webhook.Delivery{}, pgdb.ErrContended
}

// contended distinguishes between nothing to claim and other claims in the way.
func (d deliveries) contended(ctx context.Context, now time.Time, perEndpoint int) error {
	if _, err := pgdb.Locked[id.WebhookID](ctx, d.Session, anyLane, now, perEndpoint); err != nil {
		return err
	}
	return pgdb.ErrContended
}
