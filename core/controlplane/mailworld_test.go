package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

const (
	mailToken = "t0kenOfAnInvitation"
	recipient = "bob@example.com"
)

// invites adds a mail to the outbox, as an invitation does.
func (w *world) invites(r database.Record, to string) mail.Mail {
	w.t.Helper()
	m := id.FromBytes[id.MailID](w.ports.Entropy.UUID())
	sealed := must(w.ports.Secrets.Seal([]byte(mailToken), mail.SecretContext(m)))(w.t)
	made := mail.New(m, mail.Letter{
		Kind:         mail.ToInvite,
		InvitationID: id.FromBytes[id.InvitationID](w.ports.Entropy.UUID()), AccountID: r.AccountID, DatabaseID: r.ID,
		Recipient: to, Inviter: "Ada", Database: r.DisplayName, Role: account.Viewer, ExpiresAt: w.clock.Now().Add(7 * 24 * time.Hour),
	}, sealed, w.clock.Now())
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Mails().Add(ctx, made) }))
	return made
}

// mails has a dispatcher send all that can be sent now.
func (w *world) mails(cp *controlplane.ControlPlane) {
	w.t.Helper()
	for must(cp.Mails.RunNext(w.ctx))(w.t) {
	}
}

// stored is a mail as it is stored.
func (w *world) stored(m mail.Mail) (stored mail.Mail) {
	w.t.Helper()
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		stored, err = tx.Mails().Lock(ctx, m.ID)
		return err
	}))
	return stored
}

// mailEnded fails the test unless a mail is final, and its token gone.
func (w *world) mailEnded(m mail.Mail, status mail.Status) {
	w.t.Helper()
	got := w.stored(m)
	equal(w.t, "status", got.Status, status)
	equal(w.t, "a token is left", got.SealedToken != nil, false)
}

// mailLog is what the activity log says of mails that were given up.
func (w *world) mailLog(db id.DatabaseID) (reasons []string) {
	w.t.Helper()
	for _, by := range must(w.Operator.Audit(w.ctx, db, ports.Page{}))(w.t) {
		if e := by.What; e.Action == audit.InvitationNotSent {
			equal(w.t, "actor", e.Actor, audit.System)
			reasons = append(reasons, e.Details["reason"])
		}
	}
	return reasons
}

// toldOnce fails the test unless the customer was told once that a mail was given up, and why.
func (w *world) toldOnce(m mail.Mail, reason string) {
	w.t.Helper()
	if got := w.mailLog(m.DatabaseID); len(got) != 1 || got[0] != reason {
		w.t.Errorf("the activity log says %q, want %q", got, reason)
	}
}

var errDown = errors.New("the mail server is down")

func down(context.Context, int) error { return errDown }

func containsToken(text string) bool { return strings.Contains(text, mailToken) }

// noToken fails the test where something has the token in it.
func noToken(t *testing.T, what string, holds any) {
	t.Helper()
	if text := fmt.Sprintf("%+v", holds); containsToken(text) {
		t.Errorf("the token stands in %s: %s", what, text)
	}
}
