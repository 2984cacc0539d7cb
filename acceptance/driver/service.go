package driver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/fakeissuer"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/fakes/mailbox"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// The limits of every world: low for changes, so that a scenario can exhaust them, and high for the rest.
const writesAMinute = 60

var limits = map[ratelimit.Class]ratelimit.Limit{
	ratelimit.Read:   {Count: 100_000, Period: time.Minute},
	ratelimit.Write:  {Count: writesAMinute, Period: time.Minute},
	ratelimit.Create: {Count: 10_000, Period: time.Minute},
}

// apiHosts is how many API hosts a world has.
const apiHosts = 2

// service is the use cases on fakes: two hosts and a batch host that share the store, and one database server.
type service struct {
	store   *memstore.Store
	clock   *fakeclock.Clock
	hosts   []*controlplane.ControlPlane
	batch   *fakeBatch
	fleet   *fakeagent.Fleet
	server  id.ServerID // of the agent
	agent   *fakeagent.Server
	second  server.Server // without an ID until a story has asked for it
	inbox   *inbox.Inbox
	mailbox *mailbox.Mailbox
	issuers *fakeissuer.Issuers
	entropy *fakeentropy.Entropy
}

func newService(t testing.TB) *service {
	t.Helper()
	store := memstore.NewRerunning()
	s := &service{store: store, clock: fakeclock.New(), entropy: fakeentropy.New(), inbox: inbox.New(webhook.Policy{})}
	s.fleet, s.mailbox, s.issuers = fakeagent.New(s.clock), mailbox.New(), fakeissuer.New()
	ports := controlplane.Ports{
		Store: store, Admissions: store, Fleet: s.fleet, Clock: s.clock, Entropy: s.entropy, Secrets: fakebox.New(),
		Sender: s.inbox, Mailer: s.mailbox, Passwords: fakepasswords.Hasher{},
		Tokens: s.issuers,
	}
	page, err := mail.ParseLink(spec.InvitationPage)
	if err != nil {
		t.Fatal(err)
	}
	for range apiHosts + 1 {
		cp, err := controlplane.New(ports, controlplane.Config{
			Limits: limits, Pages: mail.Pages{Invitation: page}, DefaultSchedule: database.NoSchedule,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.hosts = append(s.hosts, cp)
	}
	for _, feature := range []string{
		"additional-roles", "extension-catalog", "restore", "clone", "delete", "deleted-recovery", "preview-recovery", "legacy-roles",
	} {
		if err := s.hosts[0].Operator.SetFeature(context.Background(), feature, true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.hosts[0].Operator.CreateCertificateKey(context.Background()); err != nil {
		t.Fatal(err)
	}
	registered, err := s.register("main", "db.test")
	if err != nil {
		t.Fatal(err)
	}
	s.server, s.agent = registered.ID, s.fleet.Server(registered.ID)
	s.batch = &fakeBatch{host: s.hosts[apiHosts], store: store}
	s.hosts = s.hosts[:apiHosts]
	_ = s.batch.Start() // it never fails
	t.Cleanup(func() { _ = s.batch.Stop() })
	return s
}

// register makes a database server.
func (s *service) register(name, host string) (server.Server, error) {
	return s.hosts[0].Operator.AddServer(context.Background(), operator.NewServer{
		Name: name, AgentURL: "https://agent." + host + ":8090", Secret: agentSecret, PublicHost: host, PublicPort: 6432,
		Capacity: 1000,
	})
}

// world is everything but the hosts and what only some drivers can do.
func (s *service) world() spec.World {
	customers := fakeCustomers{s}
	return spec.World{
		Routes: routes(), Operator: fakeOperator{s}, Connect: customers.connect, Restore: restoreText, Pass: s.pass, Batch: s.batch,
		HoldBackup: s.holdBackup, Spoil: s.spoil, Predate: s.predate, Rot: s.rot,
		AskUsage: s.askUsage,
		OnServer: fakeOnServer{s.agent}, Agent: fakeAgent{s.agent}, Writes: writesAMinute,
		Clock: fakeTime{s}, Receivers: s.inbox, Mails: fakeMails(s.mailbox), Restores: true,
		Pipelines: fakePipelines{s.issuers}, OldAgent: s.agesAgent, Archive: fakeArchive{s.agent},
	}
}

// pass lets time pass, and runs the batch host's periodic work.
func (s *service) pass(d time.Duration) {
	s.clock.Advance(d)
	s.batch.turn()
	time.Sleep(time.Millisecond)
}

// askUsage lets as much time pass.
func (s *service) askUsage() error {
	s.pass(usage.Every)
	return nil
}

// hasten makes every open operation due but those that wait for their callers.
func (s *service) hasten() error {
	open := ports.OperationFilter{Statuses: []operation.Status{operation.Queued, operation.Running}}
	return s.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		found, err := tx.Operations().Find(ctx, open, ports.Page{Limit: 100})
		for _, o := range found {
			if driven := s.hosts[0].Work.Spec(o.Kind).Driven; driven != nil && driven(o.Operation) {
				continue
			}
			err = errors.Join(err, tx.Operations().Hasten(ctx, o.ID, s.clock.Now()))
		}
		return err
	})
}

// errHeld hides the progress of a backup from the worker, which keeps asking.
var errHeld = errors.New("the scenario holds this backup")

func (s *service) holdBackup(db spec.Created) (release func(), err error) {
	s.agent.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "Backup" && c.Database == db.ID {
			f.Before = errHeld
		}
		return f
	})
	return func() { s.agent.OnCall(nil) }, nil
}

func (s *service) spoil(spec.Created) error {
	s.agent.SetNotVerified("table public.orders of extension citext is missing: ALTER EXTENSION citext DROP TABLE public.orders")
	return nil
}

// fakeTime moves the clock that everything shares.
type fakeTime struct{ s *service }

func (f fakeTime) Now() time.Time { return f.s.clock.Now() }

func (f fakeTime) Advance(d time.Duration) error {
	f.s.clock.Advance(d)
	f.s.batch.turn()
	return nil
}

// fakeBatch is a batch host whose rounds have their turn whenever time has passed.
type fakeBatch struct {
	host  *controlplane.ControlPlane
	store *memstore.Store
	mu    sync.Mutex
	stop  func()
}

// Start implements spec.Batch.
func (b *fakeBatch) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.host.Work.Run(ctx, b.store, work.Workers{All: 2}) })
	running.Go(func() { b.host.Dispatcher.Run(ctx, b.store.Dispatchers(), 4) })
	running.Go(func() { b.host.Mails.Run(ctx, b.store.Dispatchers()) })
	b.stop = func() { cancel(); running.Wait() }
	return nil
}

// Stop implements spec.Batch.
func (b *fakeBatch) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		b.stop()
		b.stop = nil
	}
	return nil
}

// turn does one round. What it cannot do yet, it does in a later one.
func (b *fakeBatch) turn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		_ = b.host.Rounds.Once(context.Background()) // an agent that is gone shows in what the scenario looks at
	}
}

// fakeArchive implements spec.Archive.
type fakeArchive struct{ server *fakeagent.Server }

// Keep implements spec.Archive.
func (a fakeArchive) Keep(on bool) error {
	a.server.SetArchiving(on)
	return nil
}

// Lose implements spec.Archive.
func (a fakeArchive) Lose(from, to time.Time) error {
	a.server.LoseSegments(from, to)
	return nil
}

// agentSecret is what the servers' agents would take.
const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"

func (s *service) agesAgent(on bool) {
	behind := 0
	if on {
		behind = 1
	}
	s.agent.SetProtocol(-behind)
}
