package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// roleWorld is the API with the use cases behind it and a database server in memory: one account, one database.
type roleWorld struct {
	*stage
	t        *testing.T
	use      *controlplane.ControlPlane
	server   *fakeagent.Server
	clock    *fakeclock.Clock
	store    *memstore.Store
	entropy  *fakeentropy.Entropy
	account  account.Account
	database database.Record
	list     string // of the additional roles
	key      string
	keys     int // Idempotency-Keys given out
}

func newRoleWorld(t *testing.T, changes ...func(*controlplane.Config)) *roleWorld {
	t.Helper()
	w := &roleWorld{t: t, list: "custom-roles", clock: fakeclock.New(), store: memstore.New(), entropy: fakeentropy.New()}
	fleet := fakeagent.New(w.clock)
	config := controlplane.Config{Limits: map[ratelimit.Class]ratelimit.Limit{
		ratelimit.Write: {Count: 1000, Period: time.Minute}, ratelimit.Create: {Count: 1000, Period: time.Minute},
	}}
	for _, f := range changes {
		f(&config)
	}
	w.use = check.Must(controlplane.New(controlplane.Ports{
		Store: w.store, Admissions: w.store, Fleet: fleet, Clock: w.clock, Entropy: w.entropy, Secrets: fakebox.New(),
	}, config))(t)
	ctx, o := t.Context(), w.use.Operator
	machine := check.Must(o.AddServer(ctx, operator.NewServer{
		Name: "one", AgentURL: "https://agent:8090", Secret: agentSecret, PublicHost: "db.example", PublicPort: 6432, Capacity: 10,
	}))(t)
	w.server = fleet.Server(machine.ID)
	check.NoError(w.t, o.SetFeature(ctx, "additional-roles", true))
	w.account, w.key = w.customer("ada@example.org", account.FullAccount)
	w.stage = open(t, w.use)
	made := w.send("POST", "/api/v1/databases", `{"name":"shop-1","displayName":"Shop"}`).is(201)
	w.database.ID, w.database.Name = id.DatabaseID(made.text("id")), "shop-1"
	return w
}

func (w *roleWorld) customer(email string, scope account.Scope, dbs ...id.DatabaseID) (account.Account, string) {
	w.t.Helper()
	o := w.use.Operator
	a, user, err := o.CreateAccount(w.t.Context(), operator.NewAccount{Email: email, Name: "Ada", Plan: account.Pro})
	check.NoError(w.t, err)
	for _, db := range dbs {
		check.NoError(w.t, w.store.Update(w.t.Context(), func(ctx context.Context, tx ports.Tx) error {
			return tx.Members().Set(ctx, member.Membership{
				ID: id.FromBytes[id.MembershipID](w.entropy.UUID()), DatabaseID: db, UserID: user.ID, Role: account.Viewer,
			})
		}))
	}
	_, key, err := o.CreateKey(w.t.Context(), keys.NewKey{AccountID: a.ID, Label: "k", Scope: scope, Databases: dbs})
	check.NoError(w.t, err)
	return a, key
}

// answered is an answer of the API with its JSON body, taken apart.
type answered struct {
	reply
	t    *testing.T
	body map[string]any
}

// send sends a request with the account's key, a fresh Idempotency-Key and, where there is one, a body.
func (w *roleWorld) send(method, path, body string) answered {
	w.t.Helper()
	w.keys++
	return w.sendAs(w.key, fmt.Sprint("key-", w.keys), method, path, body)
}

func (w *roleWorld) sendAs(key, idempotencyKey, method, path, body string) answered {
	w.t.Helper()
	lines := []string{"Idempotency-Key: " + idempotencyKey}
	if body != "" {
		lines = append(lines, jsonType, fmt.Sprint("Content-Length: ", len(body)))
	}
	a := answered{reply: w.ask(w.t, head(method, path, key, lines...)+body), t: w.t}
	if err := json.Unmarshal([]byte(a.reply.text), &a.body); err != nil {
		w.t.Fatalf("%s %s: %d %q", method, path, a.StatusCode, a.reply.text)
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("%s %s: %d without Cache-Control: no-store", method, path, a.StatusCode)
	}
	return a
}

// is fails unless the answer has the status.
func (a answered) is(status int) answered {
	a.t.Helper()
	if a.StatusCode != status {
		a.t.Fatalf("got %d %s, want %d", a.StatusCode, a.reply.text, status)
	}
	return a
}

// refused fails unless the answer is the error and, where a field is given, names it.
func (a answered) refused(code fault.Code, field string) answered {
	a.t.Helper()
	a.expect(a.t, code.Status(), code)
	if field != "" && !strings.Contains(a.reply.text, `"field":"`+field+`"`) {
		a.t.Errorf("%s does not name %s", a.reply.text, field)
	}
	return a
}

func (a answered) text(name string) string { s, _ := a.body[name].(string); return s }

// roles is the path of the additional roles, and of what is below them.
func (w *roleWorld) roles(below ...string) string {
	return strings.Join(append([]string{"/api/v1/databases/" + string(w.database.ID) + "/" + w.list}, below...), "/")
}

// logins is the same for the logins that came with the database.
func (w *roleWorld) logins(below ...string) string {
	return strings.Join(append([]string{"/api/v1/databases/" + string(w.database.ID) + "/managed-roles"}, below...), "/")
}

func roleText(name, profile string, limit int) string {
	quoted, _ := json.Marshal(name) // a string always is JSON
	return fmt.Sprintf(`{"displayName":%s,"accessProfile":%q,"connectionLimit":%d}`, quoted, profile, limit)
}

const (
	rotate = `{"kind":"rotate","confirmDisconnect":true}`
	cutOff = `{"confirmDisconnect":true}`
)

// agentSecret is what the servers' agents would take.
const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"
