package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

var mailTable = pgdb.TableOf[mail.Mail]("mails").WithOptional("invitation_id", "database_id")

var mailChanges = []string{
	"sealed_token", "status", "attempts", "finished_at", "lease_owner", "lease_until", "not_before",
}

// mailbox is mail.Mailbox, as the index mails_of_mailbox has it.
const mailbox = `regexp_replace(recipient, '^([^@+]+)[+][^@]*', '\1')`

const unsent = "status IN ('pending', 'sending')"

var (
	addMail     = pgdb.Define(mailTable.Insert().Suffix("RETURNING pg_notify('" + dispatchChannel + "', '')"))
	addMailLane = pgdb.Written("INSERT INTO mail_lanes (account_id, turn) VALUES ($1, 0) ON CONFLICT DO NOTHING")
	recentMails = pgdb.Written(`
		SELECT count(*) FILTER (WHERE kind <> 'warning' AND account_id = $1) AS of_account,
			count(*) FILTER (WHERE kind <> 'warning' AND account_id = $1 AND ` + mailbox + ` = $2) AS to_recipient,
			count(*) FILTER (WHERE kind <> 'warning' AND ` + mailbox + ` = $2) AS together,
			count(*) FILTER (WHERE kind = 'warning' AND account_id = $1) AS warnings
		FROM mails WHERE (account_id = $1 OR ` + mailbox + ` = $2) AND created_at > $3 AND kind <> 'notice'`)
	withdrawMails = pgdb.Written(`
		UPDATE mails SET status = 'withdrawn', finished_at = $2, sealed_token = NULL, lease_owner = '', lease_until = NULL,
			lease_epoch = lease_epoch + CASE status WHEN 'sending' THEN 1 ELSE 0 END
		WHERE invitation_id = $1 AND ` + unsent)
	lockMail    = pgdb.Define(mailTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	saveMail    = pgdb.Define(mailTable.Update(mailChanges, "id = ? AND lease_epoch = ?"))
	forgetMails = pgdb.Written(`
		DELETE FROM mails WHERE id IN (
			SELECT id FROM mails WHERE finished_at < $1 ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)`)
	mailBacklog = pgdb.Written("SELECT count(*) AS count, min(created_at) AS oldest FROM mails WHERE " + unsent)
)

type mails struct{ pgdb.Rows[mail.Mail] }

func (m mails) Add(ctx context.Context, row mail.Mail) error {
	if err := m.Write(ctx, addMailLane, row.AccountID); err != nil {
		return err
	}
	return m.Write(ctx, addMail, mailTable.Values(row)...)
}

func (m mails) Recent(
	ctx context.Context, account id.AccountID, recipient string, since time.Time,
) (mail.Recent, error) {
	return pgdb.One[mail.Recent](ctx, m.Session, recentMails, account, mail.Mailbox(recipient), since)
}

func (m mails) Withdraw(ctx context.Context, i id.InvitationID, now time.Time) error {
	return m.Write(ctx, withdrawMails, i, now)
}

func (m mails) Lock(ctx context.Context, of id.MailID) (mail.Mail, error) {
	return m.Locked(ctx, lockMail, of)
}

func (m mails) SaveLeased(ctx context.Context, row mail.Mail) error {
	arguments := append(pgdb.ValuesOf(row, mailChanges), row.ID, row.Epoch)
	return m.MustChange(ctx, ports.ErrLeaseLost, saveMail, arguments...)
}

func (m mails) Forget(ctx context.Context, before time.Time, limit int) error {
	return m.Write(ctx, forgetMails, before, limit)
}

func (m mails) Backlog(ctx context.Context) (ports.Tally, error) {
	return pgdb.One[ports.Tally](ctx, m.Session, mailBacklog)
}
