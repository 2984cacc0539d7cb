// Package inbox implements ports.WebhookSender for tests and scenarios: nothing leaves the process. It keeps every request that
// a receiver would have got, and answers as configured.
package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Request is what a receiver got.
type Request struct {
	URL       string
	EventID   string // of Service-Event-Id
	Timestamp string // of Service-Timestamp
	Signature string // of Service-Signature
	Body      []byte
}

// Answer makes the outcome of the nth request to a URL, counted from 1. It may wait; the sender's context says when its caller
// has given up.
type Answer func(ctx context.Context, n int) webhook.Outcome

// Status answers every request with the same status code.
func Status(code int) Answer {
	return func(context.Context, int) webhook.Outcome { return outcome(code) }
}

// Broken answers no request: with the text that says why.
func Broken(why string) Answer {
	return func(context.Context, int) webhook.Outcome { return webhook.Outcome{Error: why} }
}

// Inbox implements ports.WebhookSender. It is safe for concurrent use.
type Inbox struct {
	policy webhook.Policy

	mu       sync.Mutex
	names    map[string][]netip.Addr
	answers  map[string]Answer
	requests []Request
	counts   map[string]int
}

var _ ports.WebhookSender = (*Inbox)(nil)

// New makes an inbox in which every name resolves to a public address and every receiver answers 204.
func New(policy webhook.Policy) *Inbox {
	return &Inbox{policy: policy, names: map[string][]netip.Addr{}, answers: map[string]Answer{}, counts: map[string]int{}}
}

// Resolve sets what a host name resolves to from now on: with no address, to nothing.
func (i *Inbox) Resolve(host string, addresses ...netip.Addr) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names[host] = addresses
}

// On sets the answers of one URL, written as webhook.Target has it.
func (i *Inbox) On(url string, a Answer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[url] = a
}

// Requests returns what one URL got, in the order of arrival; the empty URL asks for everything.
func (i *Inbox) Requests(url string) []Request {
	i.mu.Lock()
	defer i.mu.Unlock()
	var list []Request
	for _, r := range i.requests {
		if url == "" || r.URL == url {
			list = append(list, r)
		}
	}
	return list
}

// Check implements ports.WebhookSender.
func (i *Inbox) Check(ctx context.Context, url string) (webhook.Target, error) {
	t, err := i.policy.ParseURL(url)
	if err != nil {
		return webhook.Target{}, err
	}
	if err := i.policy.DecideAddresses(i.addresses(t)); err != nil {
		return webhook.Target{}, err
	}
	return t, ctx.Err()
}

// Send implements ports.WebhookSender.
func (i *Inbox) Send(ctx context.Context, r ports.WebhookRequest) (webhook.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return webhook.Outcome{}, fmt.Errorf("the attempt was broken off: %w", err)
	}
	t, err := i.Check(ctx, r.URL)
	if err != nil {
		return webhook.Outcome{Error: told(err)}, ctx.Err()
	}
	o := i.receive(t, r)(ctx)
	if err := ctx.Err(); err != nil && o.StatusCode == 0 {
		return webhook.Outcome{}, fmt.Errorf("the attempt was broken off: %w", err)
	}
	return o, nil
}

// receive keeps the request and returns what answers it.
func (i *Inbox) receive(t webhook.Target, r ports.WebhookRequest) func(context.Context) webhook.Outcome {
	i.mu.Lock()
	defer i.mu.Unlock()
	timestamp := webhook.Timestamp(r.At)
	i.requests = append(i.requests, Request{
		URL: t.URL, EventID: string(r.EventID), Timestamp: timestamp, Body: bytes.Clone(r.Body),
		Signature: webhook.Sign(r.Secret, timestamp, r.Body),
	})
	i.counts[t.URL]++
	n, answer := i.counts[t.URL], i.answers[t.URL]
	if answer == nil {
		answer = Status(204)
	}
	return func(ctx context.Context) webhook.Outcome { return answer(ctx, n) }
}

var somewherePublic = netip.AddrFrom4([4]byte{8, 8, 8, 8})

func (i *Inbox) addresses(t webhook.Target) []netip.Addr {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t.Address.IsValid() {
		return []netip.Addr{t.Address}
	}
	if list, known := i.names[ascii.Lower(t.Host)]; known {
		return list
	}
	return []netip.Addr{somewherePublic}
}

// told is the part of a refusal that is written for customers.
func told(err error) string {
	var refusal *fault.Error
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	return err.Error()
}

func outcome(code int) webhook.Outcome {
	o := webhook.Outcome{StatusCode: code}
	if !webhook.Delivers(code) {
		o.Error = fmt.Sprintf("the receiver answered %d", code)
	}
	return o
}
