package crash_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pgherd/pgherd/acceptance/eml"
	"github.com/pgherd/pgherd/acceptance/mailserver"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/mails"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

// killsMailers kills a batch host before and after a mail server has the mail: it arrives, and one that arrives twice has one
// Message-ID. Its token stands in no log, and in the metadata only encrypted, and only until it was sent.
func killsMailers(t *testing.T, w *world) {
	server := must(mailserver.Listen(mailserver.Options{Dir: t.TempDir(), User: "pgherd", Password: "of the operator"}))(t)
	t.Cleanup(func() { noError(t, server.Close()) })
	settings := []string{
		"--smtp-address", server.Address, "--smtp-ca-file", server.CAFile, "--smtp-from", "no-reply@service.example",
		"--smtp-user", "pgherd", "--smtp-password", "of the operator", "--invitation-url", "https://app.example.org/join",
	}
	owner := w.newUser(t, 2)
	d := owner.create(t, w.api, newName("invited"))
	arrivals := map[string]int{mails.CrashClaimed: 1, mails.CrashSent: 2}
	for _, point := range mails.CrashPoints {
		t.Run(point, func(t *testing.T) {
			before, want := len(server.Arrivals()), arrivals[point]
			if want == 0 {
				t.Fatal("no test knows what happens here")
			}
			host := must(w.StartBatch(soon(t), point, settings...))(t)
			m, token := w.invites(t, d, id.AccountID(owner.ID))
			dies(t, host.Process, point)
			w.hides(t, token)
			if n := len(server.Arrivals()) - before; n != want-1 {
				t.Fatalf("%d mails before the kill, want %d", n, want-1)
			}
			w.leaseEnds(t, m)
			noError(t, host.Restart(soon(t), ""))
			eventually(t, "the mail is sent", func() (bool, string) {
				status, sealed := w.mail(t, m)
				return status == mail.Sent && !sealed, fmt.Sprintf("it is %s; its token is there: %t", status, sealed)
			})
			noError(t, host.Stop(soon(t)))
			list := server.Arrivals()[before:]
			if len(list) != want {
				t.Fatalf("%d mails, want %d", len(list), want)
			}
			for _, a := range list {
				got := must(eml.Parse(bytes.NewReader(a.Raw)))(t)
				if got.MessageID != "<"+string(m)+"@service.example>" || !strings.Contains(got.Text, "#token="+token) || !a.Secured {
					t.Errorf("%+v", got)
				}
			}
			w.hides(t, token)
			if log := must(host.Log())(t); bytes.Contains(log, []byte(token)) || bytes.Contains(log, []byte("of the operator")) {
				t.Error("a secret stands in the log of the batch host")
			}
		})
	}
}

// invites adds an invitation's mail to the outbox.
func (w *world) invites(t *testing.T, d wire.CreatedDatabase, of id.AccountID) (m id.MailID, token string) {
	t.Helper()
	box := must(secretbox.Load(w.KeyringFile()))(t)
	store := must(postgres.Open(soon(t), postgres.Config{URL: w.MetadataURL(), MaxConnections: 1}))(t)
	defer func() { noError(t, store.Close()) }()
	m, token = id.MailID(uuid.NewString()), strings.ReplaceAll(uuid.NewString(), "-", "")
	sealed := must(box.Seal([]byte(token), mail.SecretContext(m)))(t)
	now := time.Now().UTC()
	made := mail.New(m, mail.Letter{
		Kind:         mail.ToInvite,
		InvitationID: id.InvitationID(uuid.NewString()), AccountID: of, DatabaseID: d.ID, Recipient: "bob@example.com",
		Inviter: "Ada", Database: d.DisplayName, Role: account.Viewer, ExpiresAt: now.Add(time.Hour),
	}, sealed, now)
	noError(t, store.Update(soon(t), func(ctx context.Context, tx ports.Tx) error { return tx.Mails().Add(ctx, made) }))
	return m, token
}

// mail is what the metadata say of a mail.
func (w *world) mail(t *testing.T, m id.MailID) (status mail.Status, sealed bool) {
	t.Helper()
	noError(t, w.meta.QueryRow("SELECT status, sealed_token IS NOT NULL FROM mails WHERE id = $1", m).Scan(&status, &sealed))
	return status, sealed
}

// leaseEnds lets the time pass for which the dead host holds a mail.
func (w *world) leaseEnds(t *testing.T, m id.MailID) {
	t.Helper()
	const pass = "UPDATE mails SET lease_until = lease_until - $2 * interval '1 second' WHERE id = $1"
	must(w.meta.Exec(pass, m, mail.Hold.Seconds()))(t)
}

// hides fails the test where a text stands in any row of the metadata or of the agent's ledger.
func (w *world) hides(t *testing.T, text string) {
	t.Helper()
	for _, in := range []struct {
		db     *sql.DB
		schema string
	}{{w.meta, "public"}, {w.maintenance, "ledger"}} {
		tables := rows(t, in.db, "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = '"+in.schema+"'")
		for _, table := range tables {
			var found bool
			look := "SELECT EXISTS (SELECT FROM " + table[0] + " t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0)"
			noError(t, in.db.QueryRow(look, text, hex.EncodeToString([]byte(text))).Scan(&found))
			if found {
				t.Errorf("the table %s holds %q", table[0], text)
			}
		}
		if len(tables) < 15 {
			t.Errorf("%d tables of %s were searched", len(tables), in.schema)
		}
	}
}
