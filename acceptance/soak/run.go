//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// run carries out a plan.
type run struct {
	*world
	plan     plan.Plan
	accounts []*customer
	facts    *model.Facts
	chance   *rand.Rand // of what is looked at
	before   footprint  // after the first quiet round

	mu         sync.Mutex
	things     map[int]*thing
	operations []*begun
	broken     []string // what must hold and does not
	done       map[string]int

	generations map[string]int64 // after the round before
	looks       int              // clones that were made to look at moments
}

// customer is an account with its owner and keys.
type customer struct {
	stack.Account
	number    int
	ci        string             // the key of a pipeline
	namespace id.NamespaceID     // the pipeline's
	hook      wire.WebhookSecret // hears of everything
	browsers  []*http.Client     // logged in, one at each dashboard
	browsing  sync.Mutex
}

// thing is what a step has made.
type thing struct {
	step     int
	kind     plan.Thing
	account  *customer
	in       *thing // the database that it belongs to
	name     string
	rows     *model.Table
	contents *model.Contents // of a backup
	begun    time.Time

	mu     sync.Mutex
	id     string // empty while it is not known
	logins map[string]*login
}

// login is one of a database's.
type login struct {
	model.Login
	username string
	held     []held
}

// Outcome is what came of a plan.
type Outcome struct {
	Broken []string       // what must hold and does not, each beginning with the invariant's name and a colon
	Done   map[string]int // how often each action was done in each way, and what was known of it then
}

// Carry carries out a plan on a world of its own, in an empty folder that every user can enter. It takes root, and network, mount
// and process namespaces that end with the caller. An error is one of the soak itself.
func Carry(ctx context.Context, dir string, with Programs, p plan.Plan) (Outcome, error) {
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	r, err := newRun(starting, dir, with, p)
	if r.world != nil {
		defer func() { _ = r.end() }() // the namespaces end with the caller
	}
	if err != nil {
		return Outcome{}, err
	}
	broken, err := r.rounds(ctx)
	return Outcome{broken, r.done}, err
}

// startTime is how long a world may take to start.
const startTime = 10 * time.Minute

// newRun starts a world, with accounts.
func newRun(ctx context.Context, dir string, with Programs, p plan.Plan) (*run, error) {
	r := &run{
		plan: p, facts: model.NewFacts(), chance: rand.New(rand.NewPCG(p.Seed, 1)),
		things: map[int]*thing{}, done: map[string]int{}, generations: map[string]int64{},
	}
	var err error
	if r.world, err = newWorld(ctx, dir, with); err != nil {
		return r, err
	}
	for n := range p.Accounts {
		a, err := r.newAccount(ctx, n)
		if err != nil {
			return r, err
		}
		r.accounts = append(r.accounts, a)
	}
	return r, nil
}

// databases is how many an account may have: more than a plan makes, and those that recovery is tried with.
const databases = 150

func (r *run) newAccount(ctx context.Context, n int) (*customer, error) {
	of, err := r.first.NewAccount(ctx, fmt.Sprintf("soak-%d", n+1), "business", databases)
	if err != nil {
		return nil, err
	}
	a := &customer{Account: of, number: n}
	r.secrets.Add(a.Key, "the key of account "+fmt.Sprint(n+1))
	if a.ci, err = r.first.NewCIKey(ctx, of, "soak"); err != nil {
		return nil, err
	}
	r.secrets.Add(a.ci, "the CI key of account "+fmt.Sprint(n+1))
	namespaces, err := r.client(a, 0).CINamespaces.List(ctx)
	if err != nil {
		return nil, err
	}
	a.namespace = namespaces[0].ID
	a.hook, err = r.client(a, 0).Webhooks.Create(ctx, wire.CreateWebhook{URL: r.receiver.URL + a.path()})
	if err != nil {
		return nil, err
	}
	r.secrets.Add(a.hook.Secret, "a webhook's secret")
	for _, h := range r.dashboards {
		browser, err := r.first.Browser()
		if err == nil {
			err = r.first.LogIn(ctx, h, browser, of)
		}
		if err != nil {
			return nil, err
		}
		a.browsers = append(a.browsers, browser)
	}
	return a, nil
}

// path is where the account's events arrive.
func (a *customer) path() string { return fmt.Sprintf("/ok/account-%d", a.number+1) }

// client sends each request once: an answer that is lost is lost.
func (r *run) client(a *customer, host int) *apiclient.Client { return r.clientWith(a.Key, host) }

func (r *run) clientWith(key string, host int) *apiclient.Client {
	c, err := stack.Client(r.apis[host].URL, key, r.http)
	if err != nil {
		panic(err) // the hosts have addresses
	}
	return c
}

// asked bounds one request: one that waits for a process that is stopped hears in time that it goes on.
const asked = 30 * time.Second

// rounds carries out the whole plan. What must hold and does not is returned; an error is one of the soak itself.
func (r *run) rounds(ctx context.Context) ([]string, error) {
	for n := range r.plan.Rounds() {
		began := time.Now()
		r.round(ctx, n)
		if err := r.comesToRest(ctx); err != nil {
			r.broke("quiet", "%v", err)
			return r.broken, nil // whatever is looked at now says the same
		}
		r.look(ctx, n)
		log.Printf("round %d of %d took %s; broken: %d", n+1, r.plan.Rounds(), time.Since(began).Round(time.Second), len(r.broken))
		if len(r.broken) > 0 {
			break // what comes next would show the same, or follow from it
		}
	}
	return r.broken, ctx.Err()
}

// round does the steps of a round. Each account does one thing at a time, in the order of the plan, beside the others.
func (r *run) round(ctx context.Context, n int) {
	var lanes, disturbances sync.WaitGroup
	queues := make([]chan plan.Step, len(r.accounts))
	for i := range queues {
		queues[i] = make(chan plan.Step)
		lanes.Go(func() {
			for s := range queues[i] {
				r.act(ctx, s)
			}
		})
	}
	watched, watch := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { r.watchProcesses(watched) })
	for _, s := range r.plan.Round(n) {
		if d := s.Disturbance; d != nil {
			disturbances.Go(func() {
				if err := r.disturb(ctx, *d); err != nil {
					r.broke("disturbance", "step %d, %s: %v", s.Number, s, err)
				}
			})
			continue
		}
		queues[s.Action.Account] <- s
	}
	for _, q := range queues {
		close(q)
	}
	lanes.Wait()
	disturbances.Wait()
	watch()
	watcher.Wait()
}

// broke notes that something does not hold.
func (r *run) broke(what, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := what + ": " + fmt.Sprintf(format, args...)
	r.broken = append(r.broken, text)
	log.Print("BROKEN ", text)
}

// disturb has something go wrong, and puts it right again.
func (r *run) disturb(ctx context.Context, d plan.Disturbance) error {
	wait(ctx, d.After)
	begin, end := r.disturbance(d)
	if err := begin(); err != nil {
		return err
	}
	wait(ctx, d.Lasts)
	return end()
}

// disturbance is what begins one, and what ends it.
func (r *run) disturbance(d plan.Disturbance) (begin, end func() error) {
	none := func() error { return nil }
	switch d.Kind {
	case plan.Kill:
		return r.services[d.Part].kill, none
	case plan.Stop:
		p := r.services[d.Part].current()
		return p.freeze, p.thaw
	case plan.Fill:
		return r.disks[d.Part].Fill, r.disks[d.Part].Free
	case plan.Cut:
		return func() error { return r.network.Cut(string(d.Part), string(d.Other)) },
			func() error { return r.network.Heal(string(d.Part), string(d.Other)) }
	case plan.Jump:
		return func() error { return r.clocks[d.Part].Jump(d.Jump) }, func() error { return r.clocks[d.Part].Jump(-d.Jump) }
	}
	return func() error { return errors.New("nothing is known that goes wrong so") }, none
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// of is what a step has made; nil where it has made nothing.
func (r *run) of(step int) *thing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.things[step]
}

func (r *run) add(t *thing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.things[t.step] = t
}

// all are the things of some kinds, by their steps.
func (r *run) all(kinds ...plan.Thing) (list []*thing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range r.plan.Steps[len(r.plan.Steps)-1].Number + 1 {
		t := r.things[n]
		for _, k := range kinds {
			if t != nil && t.kind == k {
				list = append(list, t)
			}
		}
	}
	return list
}

// known is the thing's ID; empty where no answer has told it yet.
func (t *thing) known() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

func (t *thing) is(known string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id = known
}

func (t *thing) database() id.DatabaseID { return id.DatabaseID(t.known()) }

// login is one of the database's, by what people call it.
func (t *thing) login(name string) *login {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.logins == nil {
		t.logins = map[string]*login{}
	}
	if t.logins[name] == nil {
		t.logins[name] = &login{}
	}
	return t.logins[name]
}

// everyLogin calls fn for each login that was told of.
func (t *thing) everyLogin(fn func(name string, l *login)) {
	t.mu.Lock()
	all := map[string]*login{}
	for name, l := range t.logins {
		all[name] = l
	}
	t.mu.Unlock()
	for name, l := range all {
		fn(name, l)
	}
}

// fact is one of the thing's.
func (t *thing) fact(what string) model.Fact {
	return model.Fact(strings.ReplaceAll(string(t.kind), " ", "-") + " of step " + fmt.Sprint(t.step) + "/" + what)
}
