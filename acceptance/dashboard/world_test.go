// Package dashboard_test has people use the dashboard, on fakes: what each may do, what nobody may, and every form that a page
// has.
package dashboard_test

import (
	"context"
	"encoding/base32"
	"errors"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/dashboard"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/fakeissuer"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/fakes/mailbox"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// world is an installation with its dashboard.
type world struct {
	*testing.T
	store  *memstore.Store
	clock  *fakeclock.Clock
	mails  *mailbox.Mailbox
	cp     *controlplane.ControlPlane
	fleet  *fakeagent.Fleet
	pages  []web.Page
	server *httptest.Server
	origin *url.URL

	console *web.Console
}

const password = "correct horse battery"

// newWorld makes an installation, of which some parts may be others.
func newWorld(t *testing.T, change ...func(*controlplane.Ports, *controlplane.Config)) *world {
	t.Helper()
	store, clock, entropy := memstore.New(), fakeclock.New(), fakeentropy.New()
	w := &world{T: t, store: store, clock: clock, mails: mailbox.New(), fleet: fakeagent.New(clock)}
	w.server = httptest.NewUnstartedServer(nil)
	w.origin = must(url.Parse("https://" + w.server.Listener.Addr().String()))(t)
	pages := must(mail.DashboardPages(w.origin.String()))(t)
	many := map[ratelimit.Class]ratelimit.Limit{}
	for class := range ratelimit.Defaults() {
		many[class] = ratelimit.Limit{Count: 100_000, Period: time.Minute}
	}
	parts := controlplane.Ports{
		Store: store, Admissions: store, Fleet: w.fleet, Clock: clock, Entropy: entropy, Secrets: fakebox.New(),
		Sender: inbox.New(webhook.Policy{}), Mailer: w.mails, Passwords: fakepasswords.Hasher{},
		Passkeys: fakepasskeys.Verifier{Entropy: entropy}, Tokens: fakeissuer.New(),
	}
	config := controlplane.Config{Limits: many, Pages: pages, DefaultSchedule: database.NoSchedule, ResetPace: time.Millisecond}
	for _, other := range change {
		other(&parts, &config)
	}
	w.cp = must(controlplane.New(parts, config))(t)
	unique := func() string { return entropy.Base62(20) }
	w.pages = dashboard.Pages(w.cp, dashboard.Settings{Product: "pgherd", Mails: true, Pages: pages, Console: true}, unique)
	w.console = &web.Console{Home: dashboard.ConsoleHome}
	site, err := web.New(web.Config{
		Gate: w.cp.Access, Pages: w.pages, Nav: dashboard.Nav, Console: w.console, Origin: w.origin, Product: "pgherd",
		Log: zap.NewNop(), Metrics: prometheus.NewRegistry(), RequestID: unique, Now: clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.server.Config.Handler = site
	w.server.EnableHTTP2 = true
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	w.prepare()
	return w
}

// prepare registers a database server, opens everything, and starts a batch host.
func (w *world) prepare() {
	w.Helper()
	ctx := context.Background()
	must(w.cp.Operator.AddServer(ctx, operator.NewServer{
		Name: "main", AgentURL: "https://agent.test:8090", Secret: "0f3c5e79a1b2d4e68f7091a3b5c7d9e2", PublicHost: "db.test",
		PublicPort: 6432, Capacity: 1000,
	}))(w)
	must(w.cp.Operator.CreateCertificateKey(ctx))(w)
	for _, feature := range rollout.Features() {
		w.ok(w.cp.Operator.SetFeature(ctx, feature, true))
	}
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { w.cp.Work.Run(running, w.store, work.Workers{All: 2}) })
	all.Go(func() { w.cp.Mails.Run(running, w.store.Dispatchers()) })
	all.Go(func() { w.cp.Dispatcher.Run(running, w.store.Dispatchers(), 4) })
	w.Cleanup(func() { stop(); all.Wait() })
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// someone is a person with an account and a password.
type someone struct {
	*tab
	email string
	of    account.Account
}

// person makes somebody who is logged in.
func (w *world) person(name string, plan account.Plan) *someone {
	w.Helper()
	ctx := context.Background()
	email := strings.ToLower(name) + "@example.org"
	of, _, err := w.cp.Operator.CreateAccount(ctx, operator.NewAccount{Email: email, Name: name, Plan: plan})
	w.ok(err)
	w.ok(w.cp.Operator.SetAutoEnroll(ctx, of.ID, true))
	link, err := w.cp.Operator.LinkUser(ctx, email)
	w.ok(err)
	p := &someone{w.tab(w.T), email, of}
	p.open("/reset/"+link.Token).press("Choose the password", "New password", password).sees("The password was changed")
	p.logIn()
	return p
}

func (p *someone) logIn() {
	p.Helper()
	p.open("/login").press("Log in", "E-mail address", p.email, "Password", password).sees("Databases")
}

// makes has somebody make a database, and returns the path of its pages.
func (p *someone) makes(name string, fields ...string) string {
	p.Helper()
	p.open("/").follow("New database").press("Create the database", append([]string{"Name", name}, fields...)...).
		sees("The database is ready", "shown once")
	return p.follow("I have kept the password: to the database").at.Path
}

// settled waits until nothing is under way any more.
func (w *world) settled() {
	w.Helper()
	open := ports.OperationFilter{Statuses: []operation.Status{operation.Queued, operation.Running}}
	deadline := time.Now().Add(20 * time.Second)
	for {
		var found []ports.FoundOperation
		w.ok(w.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) (err error) {
			found, err = tx.Operations().Find(ctx, open, ports.Page{Limit: 100})
			for _, o := range found {
				err = errors.Join(err, tx.Operations().Hasten(ctx, o.ID, w.clock.Now()))
			}
			return err
		}))
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("still under way: %v", found)
		}
		w.clock.Advance(100 * time.Millisecond)
		time.Sleep(2 * time.Millisecond)
	}
}

// mailTo is the link in the last mail to an address.
func (w *world) mailTo(email string) string {
	w.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if mails := w.mails.Mails(email); len(mails) > 0 {
			_, link, found := strings.Cut(mails[len(mails)-1].Text, w.origin.String())
			if found {
				return strings.Fields(link)[0]
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	w.Fatalf("no mail with a link came to %s", email)
	return ""
}

// until waits until something holds.
func (w *world) until(holds func() bool) {
	w.Helper()
	for range 2000 {
		if holds() {
			return
		}
		w.clock.Advance(100 * time.Millisecond)
		time.Sleep(2 * time.Millisecond)
	}
	w.Fatal("it does not come to hold")
}

// requestID is how pages name the request.
var requestID = regexp.MustCompile(`(Request|request) ?(<code>)?[0-9A-Za-z]{20}`)

func withoutIDs(page string) string { return requestID.ReplaceAllString(page, "Request") }

func secretOf(text string) (person.Secret, error) {
	return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
}
