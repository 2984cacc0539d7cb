package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// candidate is the delivery that has been due longest at an endpoint, and what decides whether the endpoint is served.
type candidate struct {
	webhook.Delivery
	turn  int64
	held  int
	found bool
}

func (d deliveries) ClaimNext(
	ctx context.Context, owner string, now time.Time, hold time.Duration, perEndpoint int,
) (webhook.Delivery, error) {
	return write(ctx, d.session, func(s *state) (webhook.Delivery, error) {
		var next candidate
		for _, c := range s.candidates(now) {
			if c.found && c.held < perEndpoint && (!next.found || fairer(c, next)) {
				next = c
			}
		}
		if !next.found {
			return webhook.Delivery{}, ports.ErrNoRow
		}
		claimed := next.Claimed(owner, now, hold)
		s.deliveries.put(s.txid, claimed.ID, claimed)
		served, _ := s.webhooks.get(claimed.WebhookID)
		s.turns++
		served.turn = s.turns
		s.webhooks.put(s.txid, served.ID, served)
		return claimed, nil
	})
}

// candidates has an entry for every enabled endpoint with deliveries that are not final.
func (s *state) candidates(now time.Time) map[id.WebhookID]candidate {
	of := map[id.WebhookID]candidate{}
	for _, row := range s.deliveries.byKey {
		if row.Status.Final() {
			continue
		}
		to, _ := s.webhooks.get(row.WebhookID)
		if to.Status() == webhook.Disabled {
			continue
		}
		c := of[to.ID]
		c.turn = to.turn
		if row.UnderLease(now) {
			c.held++
		}
		if row.Claimable(now) && (!c.found || byDue(row, c.Delivery) < 0) {
			c.Delivery, c.found = row, true
		}
		of[to.ID] = c
	}
	return of
}

// fairer puts first the endpoint with the fewest deliveries held, then the one that was last served before the other.
func fairer(a, b candidate) bool {
	return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.turn, b.turn),
		dueSince(a.Delivery).Compare(dueSince(b.Delivery)), cmp.Compare(a.WebhookID, b.WebhookID)) < 0
}

func byDue(a, b webhook.Delivery) int {
	return cmp.Or(dueSince(a).Compare(dueSince(b)), byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID)))
}

// dueSince is since when the delivery may be claimed and nobody holds it.
func dueSince(d webhook.Delivery) time.Time {
	if d.Until != nil && d.Until.After(d.NotBefore) {
		return *d.Until
	}
	return d.NotBefore
}
