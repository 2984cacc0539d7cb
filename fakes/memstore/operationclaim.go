package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// operationLane is the open operations of an account on a server that are of one kind.
type operationLane struct {
	account id.AccountID
	server  id.ServerID
	kind    operation.Kind
}

func laneOf(op operation.Operation) operationLane {
	return operationLane{op.AccountID, op.ServerID, op.Kind}
}

func (o operations) ClaimNext(ctx context.Context, c ports.OperationClaim) (operation.Operation, error) {
	return write(ctx, o.session, func(s *state) (operation.Operation, error) {
		mine := func(op operation.Operation) bool {
			if c.Only != "" {
				op.NotBefore = c.Now
				return op.ID == c.Only && op.Claimable(c.Now) && slices.Contains(c.Kinds, op.Kind)
			}
			return op.Claimable(c.Now) && slices.Contains(c.Kinds, op.Kind) &&
				!slices.Contains(c.NotOf, op.AccountID) && !slices.Contains(c.NotOn, op.ServerID)
		}
		waiting := s.operations.having(mine, s.fairer)
		if len(waiting) == 0 {
			return operation.Operation{}, ports.ErrNoRow
		}
		claimed := waiting[0].Claimed(c.Owner, c.Now, c.Hold)
		s.operations.put(s.txid, claimed.ID, claimed)
		s.turns++
		s.operationLanes.put(s.txid, laneOf(claimed), s.turns)
		return claimed, nil
	})
}

// fairer puts first the account, and then the lane, that was last served before the other, and of one lane what has waited
// longest.
func (s *state) fairer(a, b operation.Operation) int {
	turnA, _ := s.operationLanes.get(laneOf(a))
	turnB, _ := s.operationLanes.get(laneOf(b))
	return cmp.Or(
		cmp.Compare(s.turnOf(a.AccountID), s.turnOf(b.AccountID)), cmp.Compare(turnA, turnB),
		dueSince(a.NotBefore, a.Until).Compare(dueSince(b.NotBefore, b.Until)),
		byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID)))
}

// turnOf is when an account was last served, in any of its lanes that still has open operations.
func (s *state) turnOf(account id.AccountID) (last int64) {
	for of, turn := range s.operationLanes.byKey {
		if of.account == account && turn > last {
			last = turn
		}
	}
	return last
}
