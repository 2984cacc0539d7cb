package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"regexp"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/fakes/mailbox"
	"github.com/pgherd/pgherd/ports"
)

// inviting is two processes on one metadata database, and an owner's databases.
type inviting struct {
	*testing.T
	store     ports.Store
	direct    *sql.DB
	processes [2]*controlplane.ControlPlane
	mails     *mailbox.Mailbox
	databases []access.Reached
}

func newInviting(t *testing.T, databases int) *inviting {
	t.Helper()
	db := migrated(t)
	w := &inviting{T: t, direct: db.Open(t), mails: mailbox.New()}
	clock, entropy, box := fakeclock.New(), fakeentropy.New(), fakebox.New()
	for i := range w.processes {
		opened := open(t, db)
		w.store = opened
		w.processes[i] = check.Must(controlplane.New(controlplane.Ports{
			Store: opened, Admissions: opened, Fleet: fakeagent.New(clock), Clock: clock, Entropy: entropy, Secrets: box,
			Mailer: w.mails, Passwords: fakepasswords.Hasher{},
		}, controlplane.Config{Instance: fmt.Sprint("process ", i)}))(t)
	}
	op := w.processes[0].Operator
	owner, _, err := op.CreateAccount(t.Context(), operator.NewAccount{
		Email: "ada@example.org", Name: "Ada", Plan: account.Business,
	})
	check.NoError(t, err)
	server := check.Must(op.AddServer(t.Context(), operator.NewServer{
		Name: "one", AgentURL: "https://agent:8090", Secret: agentSecret, PublicHost: "db.example.org", PublicPort: 6432, Capacity: 100,
	}))(t)
	_, key, err := op.CreateKey(t.Context(), keys.NewKey{AccountID: owner.ID, Label: "k", Scope: account.FullAccount})
	check.NoError(t, err)
	for n := range databases {
		r := database.Record{
			ID: id.FromBytes[id.DatabaseID](entropy.UUID()), AccountID: owner.ID, ServerID: server.ID, Name: fmt.Sprint("db-", n),
			PostgresVersion: pgversion.Default,
			DisplayName:     "Shop", RoleModel: database.Managed, Schedule: database.NoSchedule, Status: database.Active,
			Settings: database.NoSettings(), Overlay: database.Overlay{OverlayStatus: database.NoOverlay},
			CreatedAt: clock.Now(),
		}
		check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			return tx.Databases().Add(ctx, r)
		}))
		admitted := check.Must(w.processes[0].Access.Admit(t.Context(), access.Attempt{
			Key: key, Class: ratelimit.Read, Client: netip.MustParseAddr("192.0.2.1"),
		}))(t)
		w.databases = append(w.databases, check.Must(w.processes[0].Access.Reach(t.Context(), admitted.Caller, r.ID, account.Own))(t))
	}
	return w
}

var tokenInText = regexp.MustCompile(`\b[0-9A-Za-z]{40}\b`)

// invites returns the invitation of an address to one of the databases, and its token.
func (w *inviting) invites(n int, email string) (id.InvitationID, string) {
	w.Helper()
	added := check.Must(w.processes[0].Members.Add(w.Context(), w.databases[n], email, account.Viewer))(w)
	for check.Must(w.processes[0].Mails.RunNext(w.Context()))(w) {
	}
	sent := w.mails.Mails(email)
	return added.Invitation.ID, tokenInText.FindString(sent[len(sent)-1].Text)
}

func (w *inviting) accepts(process int, token string) error {
	name, password := "Bob", "correct horse battery"
	_, err := w.processes[process].Members.Accept(w.Context(), members.Acceptance{Token: token, Name: &name, Password: &password})
	return err
}

// atOnce does things from the same moment on, and returns how each ended.
func atOnce(all ...func() error) []error {
	start, errs := make(chan struct{}), make([]error, len(all))
	var running sync.WaitGroup
	for i, do := range all {
		running.Go(func() {
			<-start
			errs[i] = do()
		})
	}
	close(start)
	running.Wait()
	return errs
}

// wins is how many went well; all others must have found no invitation.
func (w *inviting) wins(errs []error) (won int) {
	w.Helper()
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !fault.Has(err, fault.InvitationNotFound):
			w.Errorf("an acceptance fails with %v", err)
		}
	}
	return won
}

func (w *inviting) people(n int) members.Listing {
	w.Helper()
	return check.Must(w.processes[0].Members.List(w.Context(), w.databases[n]))(w)
}

// member is the user of an address, who must be a member of one of the databases.
func (w *inviting) member(n int, email string) id.UserID {
	w.Helper()
	for _, m := range w.people(n).Members {
		if m.Email == email {
			return m.UserID
		}
	}
	w.Fatalf("%s is no member", email)
	return ""
}

func TestAcceptances(t *testing.T) {
	w := newInviting(t, 4)
	for name, race := range map[string]func(*inviting){
		"of many with one token one wins":                   oneTokenManyTimes,
		"two by one new person go well, and make one user":  onePersonTwice,
		"one that meets a deletion or a new token is whole": acceptanceMeets,
	} {
		t.Run(name, func(t *testing.T) {
			of := *w
			of.T = t
			race(&of)
		})
	}
}

func oneTokenManyTimes(w *inviting) {
	for round := range 4 {
		_, token := w.invites(0, fmt.Sprintf("bob%d@example.org", round))
		var all []func() error
		for n := range 12 {
			all = append(all, func() error { return w.accepts(n%2, token) })
		}
		if won := w.wins(atOnce(all...)); won != 1 {
			w.Fatalf("%d acceptances with one token", won)
		}
		if n := len(w.people(0).Members); n != round+1 {
			w.Fatalf("%d members after %d acceptances", n, round+1)
		}
	}
}

func onePersonTwice(w *inviting) {
	for round := range 8 {
		email := fmt.Sprintf("carol%d@example.org", round)
		_, one := w.invites(1, email)
		_, other := w.invites(2, email)
		errs := atOnce(func() error { return w.accepts(0, one) }, func() error { return w.accepts(1, other) })
		if won := w.wins(errs); won != 2 {
			w.Fatalf("%d of two acceptances went well", won)
		}
		if one, other := w.member(1, email), w.member(2, email); one != other {
			w.Fatalf("%s is %s here and %s there", email, one, other)
		}
	}
}

// acceptanceMeets holds what is stored to which of the two went well.
func acceptanceMeets(w *inviting) {
	joined := 0
	for round := range 12 {
		invitation, token := w.invites(3, fmt.Sprintf("dave%d@example.org", round))
		rival := func() error { return w.processes[1].Members.Revoke(w.Context(), w.databases[3], invitation) }
		if round%2 == 1 {
			rival = func() error {
				_, err := w.processes[1].Members.Resend(w.Context(), w.databases[3], invitation)
				return err
			}
		}
		errs := atOnce(func() error { return w.accepts(0, token) }, rival)
		if won := w.wins(errs); won != 1 {
			w.Fatalf("round %d: %v", round, errs)
		}
		if errs[0] == nil {
			joined++
		}
		if n := len(w.people(3).Members); n != joined {
			w.Fatalf("round %d: %d members, %d acceptances went well", round, n, joined)
		}
	}
}

// agentSecret is what the servers' agents would take.
const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"
