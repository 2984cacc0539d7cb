package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestSlowMailClaimsKeepTheCap lets claims take long, because very many accounts have mails. While one is looking, another mail
// of the account that comes first arrives, is due even longer, and is claimed: the slow claim must not go by what it counted.
func TestSlowMailClaimsKeepTheCap(t *testing.T) {
	db := migrated(t)
	populate(t, db, 1)
	const first = id.AccountID("00000000-0000-0000-0000-000000000001")
	clustertest.Exec(t, db.URL, `
		INSERT INTO users (id, email, name, created_at)
			SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'mail' || n, 'n', 'epoch'
			FROM generate_series(1, 1500) n`, `
		INSERT INTO accounts (id, owner_id, plan, created_at) SELECT id, id, 'pro', 'epoch' FROM users WHERE email LIKE 'mail%'`, `
		INSERT INTO mail_lanes SELECT id, 0 FROM accounts WHERE id::text LIKE '00000000-0000-0000-0000-%'`, `
		INSERT INTO mails (id, invitation_id, account_id, database_id, recipient, inviter, database_display, role, expires_at,
			sealed_token, status, attempts, created_at, lease_owner, lease_epoch, not_before)
			SELECT gen_random_uuid(), gen_random_uuid(), l.account_id, d.id, '', '', '', 'viewer', 'epoch', '', 'pending', 0,
				'epoch', '', 0, 'epoch' FROM mail_lanes l, databases d WHERE l.account_id <> '`+string(first)+`'`)
	var database id.DatabaseID
	if err := db.Open(t).QueryRow("SELECT id FROM databases").Scan(&database); err != nil {
		t.Fatal(err)
	}
	store, entropy, now := open(t, db), fakeentropy.New(), time.Unix(1, 0).UTC()
	do := func(fn func(ctx context.Context, tx ports.Tx) error) {
		if err := store.Update(t.Context(), fn); err != nil && !errors.Is(err, ports.ErrNoRow) {
			t.Error(err)
		}
	}
	add := func(due time.Time) {
		m := mail.New(id.FromBytes[id.MailID](entropy.UUID()), mail.Invitation{
			InvitationID: id.FromBytes[id.InvitationID](entropy.UUID()), AccountID: first, DatabaseID: database, Role: account.Viewer,
		}, []byte{}, due)
		do(func(ctx context.Context, tx ports.Tx) error { return tx.Mails().Add(ctx, m) })
	}
	claim := func() {
		do(func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Mails().ClaimNext(ctx, "d", now, mail.Hold, 1)
			return err
		})
	}
	for round := range 20 {
		add(now.Add(-time.Hour))
		var both sync.WaitGroup
		both.Go(claim)
		both.Go(func() {
			time.Sleep(time.Duration(round) * time.Millisecond / 4)
			add(now.Add(-2 * time.Hour))
			claim()
		})
		both.Wait()
		var leased int
		err := db.Open(t).QueryRow("SELECT count(*) FROM mails WHERE account_id = $1 AND status = 'sending'", first).Scan(&leased)
		if err != nil || leased > 1 {
			t.Fatalf("round %d: %d are leased of one account, want 1 at most (%v)", round, leased, err)
		}
		clustertest.Exec(t, db.URL, fmt.Sprintf("DELETE FROM mails WHERE account_id = '%s'", first),
			"UPDATE mails SET status = 'pending', lease_until = NULL WHERE status = 'sending'", "UPDATE mail_lanes SET turn = 0")
	}
}
