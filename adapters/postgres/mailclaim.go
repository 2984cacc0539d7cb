package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

const mailDueSince = "greatest(m.not_before, m.lease_until)"

// claimMail works as claimDelivery does, with accounts in place of endpoints: first has a row for each account with unsent
// mails, found by jumping through the index from account to account; chosen is the fairest whose lane nobody holds. If the turn
// of the lane has changed since it was read, the counts are out of date: then nothing is claimed, and the lane is kept locked.
// It takes, in this order, now, perAccount, the owner, and the end of the lease.
var claimMail = pgdb.Written(`
	WITH RECURSIVE first AS (
		(SELECT m.account_id, m.id, ` + mailDueSince + ` AS due FROM mails m
			WHERE m.` + unsent + ` ORDER BY m.account_id, ` + mailDueSince + `, m.created_at, m.id LIMIT 1)
		UNION ALL
		SELECT n.account_id, n.id, n.due FROM first f CROSS JOIN LATERAL (
			SELECT m.account_id, m.id, ` + mailDueSince + ` AS due FROM mails m
			WHERE m.` + unsent + ` AND m.account_id > f.account_id
			ORDER BY m.account_id, ` + mailDueSince + `, m.created_at, m.id LIMIT 1) n
	), fair AS MATERIALIZED (
		SELECT f.account_id, f.id, f.due, l.turn, b.leased
		FROM first f
		JOIN mail_lanes l ON l.account_id = f.account_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS leased FROM mails h
			WHERE h.account_id = f.account_id AND h.status = 'sending' AND h.lease_until > $1) b
		WHERE f.due <= $1 AND b.leased < $2
	), chosen AS (
		SELECT f.account_id, f.id, l.turn = f.turn AS counted FROM fair f JOIN mail_lanes l ON l.account_id = f.account_id
		ORDER BY f.leased, f.turn, f.due, f.account_id LIMIT 1 FOR NO KEY UPDATE OF l SKIP LOCKED
	), served AS (
		UPDATE mail_lanes l SET turn = nextval('mail_turns') FROM chosen c WHERE l.account_id = c.account_id AND c.counted
	), claimed AS (
		UPDATE mails t SET status = 'sending', lease_owner = $3, lease_epoch = t.lease_epoch + 1, lease_until = $4
		FROM chosen c
		WHERE c.counted AND t.id = c.id AND t.` + unsent + ` AND greatest(t.not_before, t.lease_until) <= $1
		RETURNING ` + mailTable.Row("t") + `
	)
	SELECT ` + mailTable.Row("t") + `, true AS claimed FROM claimed t
	UNION ALL
	SELECT ` + mailTable.Row("t") + `, false FROM mails t JOIN chosen c ON c.id = t.id
	WHERE NOT EXISTS (SELECT FROM claimed)`)

// ClaimNext looks again where its counts were out of date, or the mail was claimed or withdrawn in the meantime. The lanes that
// it has seen then stay locked, so the next look is at something else or is right.
func (m mails) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perAccount int,
) (mail.Mail, error) {
	for range maxLooks {
		row, err := pgdb.Locked[struct {
			mail.Mail
			Claimed bool `db:"claimed"`
		}](ctx, m.Session, claimMail, now, perAccount, owner, now.Add(hold))
		if err != nil || row.Claimed {
			return row.Mail, err
		}
	}
	return mail.Mail{}, ports.ErrNoRow
}
