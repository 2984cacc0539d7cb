package memstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

type mails struct{ session }

func (m mails) Add(ctx context.Context, row mail.Mail) error {
	return m.write(ctx, func(s *state) error {
		_, ofAccount := s.accounts.get(row.AccountID)
		_, ofDatabase := s.databases.get(row.DatabaseID)
		if !ofAccount || row.Kind == mail.ToInvite && !ofDatabase {
			return m.refuse(ports.ErrNoRow)
		}
		if _, taken := s.mails.get(row.ID); taken {
			return m.refuse(errors.New("a mail of that ID exists"))
		}
		row.SealedToken = bytes.Clone(row.SealedToken)
		s.mails.put(s.txid, row.ID, row)
		m.tx.announced = true
		return nil
	})
}

func (m mails) Recent(
	ctx context.Context, account id.AccountID, recipient string, since time.Time,
) (mail.Recent, error) {
	return read(ctx, m.session, func(s *state) (recent mail.Recent, _ error) {
		for _, row := range s.mails.byKey {
			same := mail.Mailbox(row.Recipient) == mail.Mailbox(recipient)
			if !row.CreatedAt.After(since) || row.Kind == mail.ToTell {
				continue
			}
			if row.Kind == mail.ToWarn {
				if row.AccountID == account {
					recent.Warnings++
				}
				continue
			}
			if same {
				recent.Together++
			}
			if row.AccountID != account {
				continue
			}
			recent.OfAccount++
			if same {
				recent.ToRecipient++
			}
		}
		return recent, nil
	})
}

func (m mails) Withdraw(ctx context.Context, i id.InvitationID, now time.Time) error {
	return m.write(ctx, func(s *state) error {
		for _, row := range s.mails.byKey {
			if row.InvitationID != i {
				continue
			}
			withdrawn, err := row.Withdrawn(now)
			if err != nil {
				return err
			}
			s.mails.put(s.txid, row.ID, withdrawn)
		}
		return nil
	})
}

func (m mails) Lock(ctx context.Context, of id.MailID) (mail.Mail, error) {
	return write(ctx, m.session, func(s *state) (mail.Mail, error) { return found(s.mails.get(of)) })
}

func (m mails) SaveLeased(ctx context.Context, row mail.Mail) error {
	return m.write(ctx, func(s *state) error {
		stored, ok := s.mails.get(row.ID)
		if !ok || stored.Epoch != row.Epoch {
			return ports.ErrLeaseLost
		}
		stored.SealedToken, stored.Status, stored.Attempts = bytes.Clone(row.SealedToken), row.Status, row.Attempts
		stored.FinishedAt, stored.Lease = row.FinishedAt, row.Lease
		s.mails.put(s.txid, row.ID, stored)
		return nil
	})
}

func (m mails) Forget(ctx context.Context, before time.Time, limit int) error {
	return m.write(ctx, func(s *state) error {
		ended := s.mails.having(func(row mail.Mail) bool {
			return row.FinishedAt != nil && row.FinishedAt.Before(before)
		}, func(a, b mail.Mail) int { return a.FinishedAt.Compare(*b.FinishedAt) })
		for _, old := range first(ended, limit) {
			s.mails.delete(s.txid, old.ID)
		}
		return nil
	})
}

func (m mails) Backlog(ctx context.Context) (ports.Tally, error) {
	return read(ctx, m.session, func(s *state) (b ports.Tally, _ error) {
		for _, row := range s.mails.byKey {
			if row.Status.Final() {
				continue
			}
			b.Count++
			if b.Oldest == nil || row.CreatedAt.Before(*b.Oldest) {
				b.Oldest = &row.CreatedAt
			}
		}
		return b, nil
	})
}

func (m mails) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perAccount int,
) (mail.Mail, error) {
	return write(ctx, m.session, func(s *state) (mail.Mail, error) {
		next, err := fairest(s.mails.having(every, nil), perAccount, s.mailLanes.byKey, func(m mail.Mail) waiting[id.AccountID] {
			return waiting[id.AccountID]{
				m.AccountID, m.UnderLease(now), m.Claimable(now), dueSince(m.NotBefore, m.Until), m.CreatedAt, string(m.ID),
			}
		})
		if err != nil {
			return mail.Mail{}, err
		}
		claimed := next.Claimed(owner, now, hold)
		s.mails.put(s.txid, claimed.ID, claimed)
		s.turns++
		s.mailLanes.put(s.txid, claimed.AccountID, s.turns)
		return claimed, nil
	})
}
