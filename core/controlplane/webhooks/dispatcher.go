package webhooks

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Dispatcher delivers events to the endpoints that want them: each at least once, in no guaranteed order. Any number of
// dispatchers, in any number of processes, share the work: a delivery is claimed under a lease, so nothing is lost when a
// dispatcher dies in the middle of an attempt, and the receiver recognises a repeated delivery by its Service-Event-Id.
//
// An account has at most half of a dispatcher's attempts, and those of the claims that are under way: whatever its endpoints hang
// in, others' are attempted.
type Dispatcher struct {
	base *base.Base

	mu    sync.Mutex
	most  int                  // attempts of an account; 0: no bound
	under map[id.AccountID]int // way, of each account
}

// NewDispatcher makes the dispatcher; its Run has to be called.
func NewDispatcher(p *base.Base) *Dispatcher {
	d := &Dispatcher{base: p, under: map[id.AccountID]int{}}
	rounds.Register(p.Rounds, rounds.Task{Name: "old events", Every: base.RoundEvery, Do: d.forgetEvents})
	return d
}

// forgetEvents deletes deliveries that became final long enough ago, and their events.
func (d *Dispatcher) forgetEvents(ctx context.Context, now time.Time) error {
	return d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Outbox().Forget(ctx, now.Add(-d.base.Retention.Of(retention.Deliveries)), base.RoundBatch)
	})
}

const (
	// PerEndpoint bounds the concurrent attempts at one endpoint, so that a hanging endpoint delays only its own deliveries.
	PerEndpoint = 4
	// fanOutBatch bounds one transaction that makes deliveries of events.
	fanOutBatch = 100
	// claimers is how many deliveries one dispatcher claims concurrently.
	claimers = 4
)

// Run makes deliveries of events and attempts them, up to parallel at a time, until the context ends. It returns when the
// running attempts have ended.
func (d *Dispatcher) Run(ctx context.Context, n ports.Notifier, parallel int) {
	d.mu.Lock()
	d.most = slot.Half(parallel)
	d.mu.Unlock()
	var fanningOut sync.WaitGroup
	defer fanningOut.Wait()
	fanningOut.Go(func() { base.WhenWoken(ctx, n, nil, func() { d.fanOutAll(ctx) }) })
	base.Dispatch(ctx, n, d.attempts(parallel))
}

func (d *Dispatcher) attempts(parallel int) base.Attempts[webhook.Delivery] {
	return base.Attempts[webhook.Delivery]{
		Parallel: parallel, Claimers: claimers, Claim: d.claim, Attempt: d.attempt, Unreadable: func(ctx context.Context, err error) {
			d.base.Journal.Log(ctx, ports.JournalEvent{What: "webhook.queue_unreadable", Err: err})
		},
	}
}

// fanOutAll makes deliveries of events until none is left.
func (d *Dispatcher) fanOutAll(ctx context.Context) {
	for taken := 1; taken > 0; {
		var err error
		if taken, err = d.FanOut(ctx); err != nil {
			if ctx.Err() == nil {
				d.base.Journal.Log(ctx, ports.JournalEvent{What: "webhook.events_unreadable", Err: err})
			}
			return
		}
	}
}

// FanOut makes deliveries of events that have none yet, one for each enabled endpoint that wants the event, and returns how
// many events it took.
func (d *Dispatcher) FanOut(ctx context.Context) (taken int, err error) {
	err = d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		events, err := tx.Deliveries().TakeEvents(ctx, fanOutBatch)
		if err != nil {
			return err
		}
		taken = len(events)
		var made []webhook.Delivery
		for _, e := range events {
			endpoints, err := tx.Webhooks().Wanting(ctx, e.AccountID, e.DatabaseID)
			if err != nil {
				return err
			}
			for _, endpoint := range endpoints {
				made = append(made, webhook.NewDelivery(base.NewID[id.DeliveryID](d.base.Entropy), endpoint, webhook.Content{
					ID: e.ID, OperationID: e.OperationID, RequestID: e.RequestID, Name: e.Name, Body: e.Payload,
				}, d.base.Clock.Now()))
			}
		}
		if len(made) == 0 {
			return nil
		}
		return tx.Deliveries().Add(ctx, made)
	})
	if err == nil && taken > 0 {
		d.base.Crash(CrashFannedOut)
	}
	return taken, err
}

// RunNext claims one delivery and makes its next attempt. It reports false when none was claimable.
func (d *Dispatcher) RunNext(ctx context.Context) (worked bool, err error) {
	return d.attempts(1).Next(ctx)
}

func (d *Dispatcher) claim(ctx context.Context) (claimed webhook.Delivery, err error) {
	if err := d.base.Brake.May(ctx); err != nil {
		return claimed, err
	}
	err = d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		claimed, err = tx.Deliveries().ClaimNext(ctx, d.base.Instance, d.base.Clock.Now(), webhook.Hold, PerEndpoint, d.full()...)
		return err
	})
	if err == nil {
		d.count(claimed.AccountID, 1)
	}
	return claimed, err
}

func (d *Dispatcher) count(account id.AccountID, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.under[account] += by; d.under[account] == 0 {
		delete(d.under, account)
	}
}

// full are the accounts that have as many attempts under way as they may.
func (d *Dispatcher) full() (list []id.AccountID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for account, n := range d.under {
		if d.most > 0 && n >= d.most {
			list = append(list, account)
		}
	}
	return list
}

// attempt makes one attempt and stores its outcome. If that cannot be stored, the lease ends and the attempt is repeated.
func (d *Dispatcher) attempt(ctx context.Context, claimed webhook.Delivery) {
	defer d.count(claimed.AccountID, -1)
	d.base.Crash(CrashClaimed)
	began := d.base.Clock.Now()
	ctx, ended := d.base.Tracer.Begin(ctx, trace.Span{
		Name: "webhook " + string(claimed.Event), At: trace.Joins,
		Request: claimed.RequestID, Operation: claimed.OperationID, Webhook: claimed.WebhookID,
	})
	outcome, err := d.send(ctx, claimed, began)
	ended(strconv.Itoa(outcome.StatusCode), err != nil || outcome.Error != "")
	if err == nil {
		d.base.Crash(CrashSent)
		err = d.settle(ctx, claimed, outcome, began)
	}
	if err != nil && ctx.Err() == nil {
		d.log(ctx, "webhook.unsettled", claimed, err)
	}
}

// send reads the secret at the last moment, so that after a rotation not even retries are signed with the old one.
func (d *Dispatcher) send(ctx context.Context, claimed webhook.Delivery, began time.Time) (webhook.Outcome, error) {
	e, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) (webhook.Endpoint, error) {
		return tx.Webhooks().Get(ctx, claimed.AccountID, claimed.WebhookID)
	})
	if err != nil {
		return webhook.Outcome{}, err
	}
	secret, err := d.base.Secrets.Open(e.SealedSecret, webhook.SecretContext(e.ID))
	if err != nil {
		return webhook.Outcome{}, err
	}
	return d.base.Sender.Send(ctx, ports.WebhookRequest{
		URL: e.URL, Secret: string(secret), EventID: claimed.ID, Body: claimed.Body, At: began,
	})
}

// settle stores an attempt in one transaction: the delivery, the endpoint and, if that disables the endpoint, an activity entry.
// It does so even when the dispatcher is stopping, but takes no longer than a lease lasts: a hanging store must block neither a
// slot nor the process.
func (d *Dispatcher) settle(ctx context.Context, claimed webhook.Delivery, o webhook.Outcome, began time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhook.Hold)
	defer cancel()
	jitter := webhook.Jitter(d.base.Entropy.UUID())
	var settled webhook.Settled
	err := d.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		endpoint, err := tx.Webhooks().Lock(ctx, claimed.WebhookID)
		if err != nil {
			return err
		}
		stored, err := tx.Deliveries().Lock(ctx, claimed.ID)
		if err != nil {
			return err
		}
		if stored.Epoch != claimed.Epoch {
			return ports.ErrLeaseLost
		}
		now := d.base.Clock.Now()
		if settled, err = webhook.Settle(stored, endpoint, o, began, now, jitter); err != nil {
			return err
		}
		if err := tx.Deliveries().SaveLeased(ctx, settled.Delivery, &settled.Attempt); err != nil {
			return err
		}
		return d.saveEndpoint(ctx, tx, endpoint, settled.Endpoint, now)
	})
	if err != nil {
		return err
	}
	what, cause := "webhook.delivered", error(nil)
	if settled.Attempt.Error != "" {
		what, cause = "webhook.failed", errors.New(settled.Attempt.Error)
	}
	d.log(ctx, what, claimed, cause)
	return nil
}

func (d *Dispatcher) saveEndpoint(ctx context.Context, tx ports.Tx, before, after webhook.Endpoint, now time.Time) error {
	if before.ConsecutiveFailures == after.ConsecutiveFailures && before.Status() == after.Status() {
		return nil
	}
	if err := tx.Webhooks().Save(ctx, after); err != nil {
		return err
	}
	if after.Status() == before.Status() {
		return nil
	}
	if err := tx.Deliveries().Abandon(ctx, after.ID, now); err != nil {
		return err
	}
	return auditEndpoint(ctx, d.base, tx, audit.System, audit.WebhookDisabled, after)
}

func (d *Dispatcher) log(ctx context.Context, what string, w webhook.Delivery, err error) {
	d.base.Journal.Log(ctx, ports.JournalEvent{
		What: what, Kind: string(w.Event), WebhookID: w.WebhookID, DeliveryID: w.ID, OperationID: w.OperationID,
		RequestID: w.RequestID, Epoch: w.Epoch, Err: err,
	})
}
