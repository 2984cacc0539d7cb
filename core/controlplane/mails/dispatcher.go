// Package mails sends the mails of the outbox.
package mails

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

// Dispatcher sends mails: each at least once, in no guaranteed order. Any number of dispatchers, in any number of processes,
// share the work: a mail is claimed under a lease, so none is lost when a dispatcher dies in the middle of an attempt, and one
// that arrives twice has the same Message-ID.
type Dispatcher struct{ base *base.Base }

// NewDispatcher makes the dispatcher; its Run has to be called where the process has a Mailer.
func NewDispatcher(p *base.Base) *Dispatcher {
	d := &Dispatcher{base: p}
	rounds.Register(p.Rounds, rounds.Task{Name: "old mails", Every: base.RoundEvery, Do: d.forgetMails})
	return d
}

// forgetMails deletes mails that became final mail.Retention ago: each contains an address.
func (d *Dispatcher) forgetMails(ctx context.Context, now time.Time) error {
	return d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Mails().Forget(ctx, now.Add(-mail.Retention), base.RoundBatch)
	})
}

const (
	// parallel is how many mails a dispatcher sends at a time: as many connections as a mail server commonly grants one client.
	parallel = 8
	// perAccount bounds how many of these are of one account, so that one that invites thousands delays mostly itself.
	perAccount = 2
)

// Run sends mails until the context ends. It returns when the running attempts have ended.
func (d *Dispatcher) Run(ctx context.Context, n ports.Notifier) {
	base.Dispatch(ctx, n, d.attempts())
}

func (d *Dispatcher) attempts() base.Attempts[mail.Mail] {
	return base.Attempts[mail.Mail]{
		Parallel: parallel, Claimers: 1, Claim: d.claim, Attempt: d.attempt, Unreadable: func(ctx context.Context, err error) {
			d.base.Journal.Log(ctx, ports.JournalEvent{What: "mail.queue_unreadable", Err: err})
		},
	}
}

// RunNext claims one mail and makes its next attempt. It reports false when none was claimable.
func (d *Dispatcher) RunNext(ctx context.Context) (worked bool, err error) {
	return d.attempts().Next(ctx)
}

func (d *Dispatcher) claim(ctx context.Context) (claimed mail.Mail, err error) {
	if err := d.base.Brake.May(ctx); err != nil {
		return claimed, err
	}
	err = d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		claimed, err = tx.Mails().ClaimNext(ctx, d.base.Instance, d.base.Clock.Now(), mail.Hold, perAccount)
		return err
	})
	return claimed, err
}

// attempt makes one attempt and stores its outcome. Where the dispatcher stops before the outcome is known, or the outcome
// cannot be stored, the lease ends and the attempt is repeated.
func (d *Dispatcher) attempt(ctx context.Context, claimed mail.Mail) {
	d.base.Crash(CrashClaimed)
	err := d.send(ctx, claimed)
	if ctx.Err() != nil && err != nil {
		return
	}
	if err == nil {
		d.base.Crash(CrashSent)
	}
	if unsettled := d.settle(ctx, claimed, err); unsettled != nil && !errors.Is(unsettled, errGone) {
		d.log(ctx, "mail.unsettled", claimed, unsettled)
	}
}

func (d *Dispatcher) send(ctx context.Context, claimed mail.Mail) error {
	now := d.base.Clock.Now()
	if !now.Before(claimed.ExpiresAt) {
		return &mail.Refusal{Reason: "the " + string(claimed.Kind) + " expired before its mail could be sent"}
	}
	if !d.base.Pages.Lead(claimed.Kind) {
		return errors.New("this host does not know where the dashboard is: --dashboard-url")
	}
	token, err := d.base.Secrets.Open(claimed.SealedToken, mail.SecretContext(claimed.ID))
	if err != nil {
		return fmt.Errorf("the token cannot be decrypted: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, mail.Timeout)
	defer cancel()
	return d.base.Mailer.Send(ctx, claimed.Compose(string(token), d.base.Pages, now))
}

// errGone means that the mail was withdrawn, or its database removed, during the attempt.
var errGone = errors.New("the mail was withdrawn during the attempt")

// settle stores the outcome of an attempt, and an activity entry where that of an invitation is given up. It does so even when
// the dispatcher is stopping, but takes no longer than a lease lasts: a hanging store must block neither a slot nor the process.
func (d *Dispatcher) settle(ctx context.Context, claimed mail.Mail, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mail.Hold)
	defer cancel()
	outcome := outcomeOf(failure)
	var settled mail.Mail
	err := d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		stored, err := tx.Mails().Lock(ctx, claimed.ID)
		switch {
		case errors.Is(err, ports.ErrNoRow) || err == nil && stored.Status == mail.Withdrawn:
			return errGone
		case err != nil:
			return err
		case stored.Epoch != claimed.Epoch:
			return ports.ErrLeaseLost
		}
		if settled, err = stored.Settle(outcome, d.base.Clock.Now()); err != nil {
			return err
		}
		err = tx.Mails().SaveLeased(ctx, settled)
		if err != nil || settled.Status != mail.Failed || settled.Kind != mail.ToInvite {
			return err
		}
		return d.audit(ctx, tx, settled, outcome.Error)
	})
	if err == nil {
		d.log(ctx, whatBecameOf(settled), claimed, failure)
	}
	return err
}

// whatBecameOf names the outcome of an attempt in the journal.
func whatBecameOf(m mail.Mail) string {
	switch m.Status {
	case mail.Sent:
		return "mail.delivered"
	case mail.Failed:
		return "mail.failed"
	default:
		return "mail.deferred"
	}
}

// outcomeOf keeps of an error what a customer may know. The rest is the operator's, and in the journal.
func outcomeOf(failure error) mail.Outcome {
	var refusal *mail.Refusal
	switch {
	case failure == nil:
		return mail.Outcome{}
	case errors.As(failure, &refusal):
		return mail.Outcome{Error: refusal.Reason, Permanent: !refusal.Doubtful, Doubtful: refusal.Doubtful}
	}
	return mail.Outcome{Error: "the mail could not be sent in several days of attempts"}
}

// audit logs for the customer that the mail will not arrive. The invitation still has its address.
func (d *Dispatcher) audit(ctx context.Context, tx ports.Tx, m mail.Mail, reason string) error {
	about := database.Record{ID: m.DatabaseID, AccountID: m.AccountID}
	details := audit.Details{"invitationId": string(m.InvitationID), "reason": reason}
	return d.base.Audit(ctx, tx, about, audit.System, audit.InvitationNotSent, details)
}

func (d *Dispatcher) log(ctx context.Context, what string, m mail.Mail, err error) {
	d.base.Journal.Log(ctx, ports.JournalEvent{
		What: what, Kind: string(m.Kind), DatabaseID: m.DatabaseID, MailID: m.ID, Epoch: m.Epoch, Err: err,
	})
}
