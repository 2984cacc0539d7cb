package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// fairQueue is a table whose rows are claimed fairly: by lanes, of which the next is the one with the fewest claimed rows, then
// the one that was served longest ago.
type fairQueue struct {
	table, lanes, lane, turns string // lane is the column that says whose a row is
	open, claimed             string // what is true of a row that is not finished, and the status of one that is claimed
	account                   string // whose a lane is
	join                      string // what a lane that may be served has

	claim, await, any *pgdb.Statement
}

var (
	fairDeliveries = fairly(deliveryTable, fairQueue{
		table: "webhook_deliveries", lanes: "webhook_lanes", lane: "webhook_id", turns: "webhook_turns",
		open: undelivered, claimed: "delivering", account: "e.account_id",
		join: "JOIN webhook_endpoints e ON e.id = f.webhook_id AND e.disabled_at IS NULL",
	})
	fairMails = fairly(mailTable, fairQueue{
		table: "mails", lanes: "mail_lanes", lane: "account_id", turns: "mail_turns", open: unsent, claimed: "sending",
		account: "f.account_id",
	})
)

// fairly builds the statements. The last of their common CTEs, fair, has a row for each lane that may be served now: the row that
// has been due longest, the lane's turn, and how many are claimed. They jump from lane to lane through the index, so they cost
// the same whether a lane has one row waiting or ten thousand. The parameters are $1 now, $2 how many of a lane may be claimed,
// and $3 the accounts that get nothing; of a claim also $4 the owner and $5 the end of the lease.
//
// Each jump and each count is a short scan of its own: such a scan marks the index entries of finished rows as dead, and no later
// one visits them. One scan over all that is claimed would visit them until the next vacuum.
//
// Claims of different lanes do not wait for each other: SKIP LOCKED gives each of them a different lane. If the turn of a lane
// has changed since it was read, the lane was served in the meantime and its counts are out of date: then nothing is claimed, and
// the lane is kept locked.
func fairly[T any](t *pgdb.Table[T], q fairQueue) *fairQueue {
	const fairest = `FROM fair f JOIN LANES l ON l.LANE = f.LANE
		ORDER BY f.leased, f.turn, f.due, f.LANE LIMIT 1 FOR NO KEY UPDATE OF l`
	row := t.Prefixed("t", "row.")
	written := func(text string) *pgdb.Statement {
		return pgdb.Written(strings.NewReplacer(
			"TABLE", q.table, "LANES", q.lanes, "LANE", q.lane, "TURNS", q.turns, "OPEN", q.open, "CLAIMED", q.claimed,
			"JOINED", q.join, "ACCOUNT", q.account, "SINCE", "greatest(d.not_before, d.lease_until)",
		).Replace(`
			WITH RECURSIVE first AS (
				(SELECT d.LANE, d.id, SINCE AS due FROM TABLE d WHERE d.OPEN ORDER BY d.LANE, SINCE, d.created_at, d.id LIMIT 1)
				UNION ALL
				SELECT n.LANE, n.id, n.due FROM first f CROSS JOIN LATERAL (
					SELECT d.LANE, d.id, SINCE AS due FROM TABLE d WHERE d.OPEN AND d.LANE > f.LANE
					ORDER BY d.LANE, SINCE, d.created_at, d.id LIMIT 1) n
			), fair AS MATERIALIZED (
				SELECT f.LANE, f.id, f.due, l.turn, b.leased FROM first f JOINED JOIN LANES l ON l.LANE = f.LANE
				CROSS JOIN LATERAL (
					SELECT count(*) AS leased FROM TABLE h
					WHERE h.LANE = f.LANE AND h.status = 'CLAIMED' AND h.lease_until > $1) b
				WHERE f.due <= $1 AND b.leased < $2 AND ACCOUNT <> ALL ($3::uuid[])
			)` + text))
	}
	q.claim = written(`, chosen AS (
			SELECT f.LANE, f.id, l.turn = f.turn AS counted ` + fairest + ` SKIP LOCKED
		), served AS (
			UPDATE LANES l SET turn = nextval('TURNS') FROM chosen c WHERE l.LANE = c.LANE
		), claimed AS (
			UPDATE TABLE t SET status = 'CLAIMED', lease_owner = $4, lease_epoch = t.lease_epoch + 1, lease_until = $5
			FROM chosen c
			WHERE c.counted AND t.id = c.id AND t.OPEN AND greatest(t.not_before, t.lease_until) <= $1
			RETURNING t.*
		)
		SELECT ` + row + `, true AS claimed FROM claimed t
		UNION ALL
		SELECT ` + row + `, false FROM TABLE t JOIN chosen c ON c.id = t.id WHERE NOT EXISTS (SELECT FROM claimed)`)
	q.await = written("SELECT f.LANE " + fairest) // it waits for whoever serves the fairest lane
	q.any = written("SELECT LANE FROM fair LIMIT 1")
	return &q
}

// maxLooks is how often a claim tries before its transaction is run again.
const maxLooks = 4

// claimFairly claims in one statement. If that finds nothing, other claims may be in the way: then it waits for the lane that it
// would have taken, and tries again. It never waits for a lane while it holds one.
func claimFairly[T any](
	ctx context.Context, s pgdb.Session, q *fairQueue, owner string, now time.Time, hold time.Duration, most int,
	except []id.AccountID,
) (none T, err error) {
	holdsLane, without := false, pq.Array(append([]id.AccountID{}, except...)) // an empty list, not NULL
	for range maxLooks {
		found, err := pgdb.Locked[struct {
			Row     T    `db:"row"`
			Claimed bool `db:"claimed"`
		}](ctx, s, q.claim, now, most, without, owner, now.Add(hold))
		switch {
		case err == nil && found.Claimed:
			return found.Row, nil
		case err != nil && !errors.Is(err, ports.ErrNoRow):
			return none, err
		case err != nil && holdsLane: // either there is nothing to claim, or other claims are in the way
			if _, err := pgdb.Locked[string](ctx, s, q.any, now, most, without); err != nil {
				return none, err
			}
			return none, pgdb.ErrContended
		case err != nil:
			if _, err := pgdb.Locked[string](ctx, s, q.await, now, most, without); err != nil {
				return none, err
			}
		}
		holdsLane = true
	}
	return none, pgdb.ErrContended
}

func (d deliveries) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perEndpoint int, except ...id.AccountID,
) (webhook.Delivery, error) {
	return claimFairly[webhook.Delivery](ctx, d.Session, fairDeliveries, owner, now, hold, perEndpoint, except)
}

func (m mails) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perAccount int,
) (mail.Mail, error) {
	return claimFairly[mail.Mail](ctx, m.Session, fairMails, owner, now, hold, perAccount, nil)
}
