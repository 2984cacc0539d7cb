package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Queue is the suite of claims, leases and epochs.
func Queue(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a claim leaves what the core says", claimIsTheCores},
		{"what has waited longest is claimed first", longestFirst},
		{"accounts take turns, and so do servers and kinds", lanesTakeTurns},
		{"an account whose work has ended has had its turn", endedCounts},
		{"a worker gets nothing of what it has enough of or does not know", claimsLeaveOut},
		{"one operation can be claimed before it is due", oneIsClaimed},
		{"an operation follows its database to another server", workMoves},
		{"what rests, is held or is final is not claimed", restingIsLeft},
		{"a lost lease writes nothing", lostLeaseWritesNothing},
		{"many workers of two hosts never claim one twice", noneIsClaimedTwice},
		{"epochs fence workers that race", epochsFence},
	})
}

const hold = 30 * time.Second

// claimed are the kinds that the suite's workers know.
var claimed = []operation.Kind{"backup", "lifecycle"}

func claimOf(ctx context.Context, s ports.Store, c ports.OperationClaim) (operation.Operation, error) {
	return take(ctx, s, func(ctx context.Context, tx ports.Tx) (operation.Operation, error) {
		return tx.Operations().ClaimNext(ctx, c)
	})
}

// unclaimed demands that a claim finds nothing.
func (w *world) unclaimed(what string, c ports.OperationClaim) {
	w.Helper()
	if o, err := claimOf(w.Context(), w.Store, c); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("%s: claimed %s (%v)", what, o.ID, err)
	}
}

func (w *world) mustClaimOf(c ports.OperationClaim) operation.Operation {
	w.Helper()
	o, err := claimOf(w.Context(), w.Store, c)
	if err != nil {
		w.Fatalf("claiming at %v: %v", c.Now, err)
	}
	return o
}

func claimBy(owner string, now time.Time) ports.OperationClaim {
	return ports.OperationClaim{Owner: owner, Now: now, Hold: hold, Kinds: claimed}
}

func (w *world) mustClaim(owner string, now time.Time) operation.Operation {
	w.Helper()
	return w.mustClaimOf(claimBy(owner, now))
}

func (w *world) nothingToClaim(what string, now time.Time) {
	w.Helper()
	w.unclaimed(what, claimBy("worker-0", now))
}

func claimIsTheCores(w *world) {
	w.nothingToClaim("an empty queue", epoch)
	o := w.addWork(w.addDatabase("shop").ID)
	want := o.Claimed("worker-1", minutes(1), hold)
	w.equal("the claimed operation", w.mustClaim("worker-1", minutes(1)), want)
	w.equal("as stored", getWork(w, o.ID), want)
	later := minutes(2)
	want = want.Claimed("worker-2", later, hold)
	w.equal("claimed again", w.mustClaim("worker-2", later), want)
}

func longestFirst(w *world) {
	add := func(name string, created, notBefore int) id.OperationID {
		return w.addWork(w.addDatabase(name).ID, func(o *operation.Operation) {
			o.CreatedAt, o.NotBefore = minutes(created), minutes(notBefore)
		}).ID
	}
	rested := add("rested", 0, 6)
	third, first, second := add("third", 5, 5), add("first", 1, 1), add("second", 2, 2)
	abandoned := w.work(w.addDatabase("abandoned").ID).Claimed("worker-9", minutes(3), 30*time.Second)
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, abandoned))
	for i, want := range []id.OperationID{first, second, abandoned.ID, third, rested} {
		w.equal(fmt.Sprintf("claim %d", i+1), w.mustClaim("worker-1", minutes(10)).ID, want)
	}
	w.nothingToClaim("after all are claimed", minutes(10))
}

// lanesTakeTurns gives one account many operations on two servers, and another one few.
func lanesTakeTurns(w *world) {
	other := w.addServer("second", 100)
	_, theirs := w.addAccount("grace@example.com")
	add := func(i int, a id.AccountID, s id.ServerID, kind operation.Kind) operation.Operation {
		db := w.addDatabase(numbered(i), func(r *database.Record) { r.AccountID, r.ServerID = a, s })
		return w.addWork(db.ID, func(o *operation.Operation) {
			o.AccountID, o.ServerID, o.Kind, o.NotBefore = a, s, kind, epoch.Add(time.Duration(i)*time.Second)
		})
	}
	var names []string
	called := map[id.OperationID]string{}
	for i, v := range []struct {
		name    string
		account id.AccountID
		server  id.ServerID
		kind    operation.Kind
	}{
		{"flood 1", w.account.ID, w.server.ID, "backup"}, {"flood 2", w.account.ID, w.server.ID, "backup"},
		{"flood 3", w.account.ID, w.server.ID, "backup"}, {"stop", w.account.ID, w.server.ID, "lifecycle"},
		{"elsewhere", w.account.ID, other.ID, "backup"},
		{"theirs 1", theirs.ID, w.server.ID, "backup"}, {"theirs 2", theirs.ID, w.server.ID, "backup"},
	} {
		called[add(i, v.account, v.server, v.kind).ID] = v.name
	}
	for range called {
		names = append(names, called[w.mustClaim("worker-1", minutes(1)).ID])
	}
	w.equal("the order", names,
		[]string{"flood 1", "theirs 1", "stop", "theirs 2", "elsewhere", "flood 2", "flood 3"})
}

// endedCounts has one account's work end, and be forgotten, before its next work and another account's are due.
func endedCounts(w *world) {
	_, theirs := w.addAccount("grace@example.com")
	add := func(i int, a id.AccountID, kind operation.Kind, due int) operation.Operation {
		db := w.addDatabase(numbered(i), func(r *database.Record) { r.AccountID = a })
		return w.addWork(db.ID, func(o *operation.Operation) {
			o.AccountID, o.Kind, o.NotBefore = a, kind, minutes(due)
		})
	}
	add(1, w.account.ID, "backup", 0)
	next := add(2, w.account.ID, "lifecycle", 5)
	other := add(3, theirs.ID, "backup", 6)
	over := ended(w.mustClaim("worker-1", minutes(1)), operation.Succeeded)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, over))
	w.update(func(ctx context.Context, tx ports.Tx) error { // the first one's end is noted
		if _, err := tx.Operations().ClaimNext(ctx, claimBy("worker-1", minutes(2))); !errors.Is(err, ports.ErrNoRow) {
			w.Errorf("before the next is due: %v", err)
		}
		return nil
	})
	w.equal("first", w.mustClaim("worker-1", minutes(10)).ID, other.ID)
	w.equal("then", w.mustClaim("worker-1", minutes(10)).ID, next.ID)
}

func claimsLeaveOut(w *world) {
	other := w.addServer("second", 100)
	_, theirs := w.addAccount("grace@example.com")
	db := w.addDatabase("theirs", func(r *database.Record) { r.AccountID, r.ServerID = theirs.ID, other.ID })
	of := w.addWork(db.ID, func(o *operation.Operation) { o.AccountID, o.ServerID = theirs.ID, other.ID })
	c := claimBy("worker-1", minutes(1))
	for what, leave := range map[string]func(*ports.OperationClaim){
		"an account that has enough":   func(c *ports.OperationClaim) { c.NotOf = []id.AccountID{w.account.ID, theirs.ID} },
		"a server that has enough":     func(c *ports.OperationClaim) { c.NotOn = []id.ServerID{other.ID} },
		"a kind that it does not know": func(c *ports.OperationClaim) { c.Kinds = []operation.Kind{"lifecycle"} },
		"all kinds":                    func(c *ports.OperationClaim) { c.Kinds = nil },
	} {
		without := c
		leave(&without)
		w.unclaimed(what, without)
	}
	c.NotOf, c.NotOn = []id.AccountID{w.account.ID}, []id.ServerID{w.server.ID}
	w.equal("what is left", w.mustClaimOf(c).ID, of.ID)
}

func oneIsClaimed(w *world) {
	o := w.addWork(w.addDatabase("shop").ID, func(o *operation.Operation) { o.NotBefore = minutes(60) })
	w.addWork(w.addDatabase("other").ID)
	c := claimBy("worker-1", minutes(1))
	c.Only = o.ID
	w.equal("before it is due", w.mustClaimOf(c), o.Claimed("worker-1", minutes(1), hold))
	w.unclaimed("while it is held", c)
	c.Now = c.Now.Add(hold)
	unknown := c
	unknown.Kinds = []operation.Kind{"lifecycle"}
	w.unclaimed("of an unknown kind", unknown)
	got := w.mustClaimOf(c)
	w.equal("when the lease is over", got.Epoch, int64(2))
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(got, operation.Failed)))
	c.Now = c.Now.Add(hold)
	w.unclaimed("when it is final", c)
}

func workMoves(w *world) {
	other := w.addServer("second", 100)
	db := w.addDatabase("shop")
	o := w.addWork(db.ID)
	w.update(writing2(ports.Tx.Servers, ports.Servers.Move, db.ID, other.ID))
	o.ServerID = other.ID
	w.equal("as stored", getWork(w, o.ID), o)
	c := claimBy("worker-1", minutes(1))
	c.NotOn = []id.ServerID{w.server.ID}
	w.equal("on the other server", w.mustClaimOf(c).ID, o.ID)
}

func restingIsLeft(w *world) {
	w.addWork(w.addDatabase("resting").ID, func(o *operation.Operation) { o.NotBefore = minutes(5) })
	w.addWork(w.addDatabase("final").ID, func(o *operation.Operation) { *o = ended(*o, operation.Succeeded) })
	w.nothingToClaim("before it is due", minutes(5).Add(-time.Microsecond))
	held := w.mustClaim("worker-1", minutes(5))
	w.nothingToClaim("while it is held", held.Until.Add(-time.Microsecond))
	held.Until, held.NotBefore = nil, minutes(8)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, held))
	w.nothingToClaim("while it rests again", minutes(8).Add(-time.Microsecond))
	w.equal("when it has rested", w.mustClaim("worker-2", minutes(8)).Epoch, int64(2))
}

func lostLeaseWritesNothing(w *world) {
	w.addWork(w.addDatabase("shop").ID)
	slept := w.mustClaim("worker-1", minutes(1))
	current := w.mustClaim("worker-2", *slept.Until)
	slept.Status, slept.Stage = operation.Succeeded, operation.StageFinished
	save := func(o operation.Operation) transaction {
		return writing(ports.Tx.Operations, ports.Operations.SaveLeased, o)
	}
	w.refused("a write under the old epoch", ports.ErrLeaseLost, save(slept))
	w.equal("as the new owner left it", getWork(w, current.ID), current)

	ahead := current
	ahead.Epoch++
	w.refused("a write under an epoch that never was", ports.ErrLeaseLost, save(ahead))
	final := ended(current, operation.Failed)
	w.update(save(final))
	w.refused("a write after the end", ports.ErrLeaseLost, save(current))
	ghost := current
	ghost.ID = newID[id.OperationID]()
	w.refused("a write to an operation that does not exist", ports.ErrLeaseLost, save(ghost))
}

func noneIsClaimedTwice(w *world) {
	const works = 60
	for i := range works {
		w.addWork(w.addDatabase(numbered(i)).ID)
	}
	w.takenOnce("operations", works, func(host ports.Store, worker int) ([]string, error) {
		o, err := claimOf(w.Context(), host, claimBy(fmt.Sprint("worker-", worker), minutes(1)))
		if errors.Is(err, ports.ErrNoRow) {
			return nil, nil
		}
		return []string{string(o.ID)}, err
	})
}

// epochsFence lets workers claim, sleep past their lease, and write: exactly the latest claim's write may succeed.
func epochsFence(w *world) {
	o := w.addWork(w.addDatabase("shop").ID)
	const rounds = 12
	held := make([]operation.Operation, rounds)
	now := minutes(1)
	for i := range held {
		held[i] = w.mustClaim(fmt.Sprint("worker-", i), now)
		now = now.Add(hold)
	}
	w.fenced(rounds, func(i int) transaction {
		held[i].Stage = held[i].Owner
		return writing(ports.Tx.Operations, ports.Operations.SaveLeased, held[i])
	})
	w.equal("the stage", getWork(w, o.ID).Stage, fmt.Sprint("worker-", rounds-1))
}
