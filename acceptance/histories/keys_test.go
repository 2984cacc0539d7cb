package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/ports"
)

// A request with a key is done once: whoever repeats it, and be it because the answer was lost, gets what it has made, and who
// uses the key for something else gets a conflict.

// keyFact is what a request with a key has got.
type keyFact struct {
	is   string
	key  string // with its route
	body string
	made string
}

func (f keyFact) kind() string  { return f.is }
func (f keyFact) about() string { return f.key }

const (
	answered   = "answered"
	conflicted = "refused: the key is another request's, or something else is under way"
	unknown    = "not confirmed yet, or not begun"
	unheard    = "answered to nobody"
	executed   = "executed"
)

// keyState is that of a key. made is empty where the first request has got no answer.
type keyState struct {
	begun      bool
	body, made string
}

func keyRules(s keyState, f keyFact) []keyState {
	switch f.is {
	case answered:
		if s.begun && s.made == "" {
			s.made = f.made
		}
		return only(keyState{true, f.body, f.made}, !s.begun || s == keyState{true, f.body, f.made})
	case conflicted:
		return only(s, !s.begun || s.body != f.body)
	case unknown, unheard:
		if !s.begun {
			return []keyState{s, {begun: true, body: f.body}}
		}
		return only(s, s.body == f.body || f.is == unheard)
	case executed: // by whom it is known in the end
		return only(s, s.begun && s.made == f.made)
	}
	return nil
}

// keyed are the clients of routes that take keys.
type keyed struct {
	*world
	*history[keyFact]
	db id.DatabaseID
}

const keysOfRoute = 3

func keyHistories(t *testing.T, seed uint64, s setting) *history[keyFact] {
	c := &keyed{world: newWorld(t, seed, s), history: &history[keyFact]{}}
	first := c.planes[0]
	c.db = must(first.Databases.Create(c.ctx, c.caller, databases.CreateRequest{Name: "shop", DisplayName: "A shop"}))(t).Record.ID
	stop := c.background()
	dice := diceOf(seed, 100)
	for _, s := range c.servers {
		c.fleet.Server(s.ID).LoseReplies(dice.IntN(4))
	}
	together(seed, 4, 10, func(_ int, dice *rand.Rand) {
		c.ask(pick(dice, c.planes), dice.IntN(2), dice.IntN(keysOfRoute), dice.IntN(2), dice.IntN(4) == 0)
	})
	stop()
	for range 5 { // what was begun ends
		c.clock.Advance(2 * time.Minute)
		c.turn()
	}
	for route := range 2 {
		for key := range keysOfRoute {
			for body := range 2 {
				c.ask(first, route, key, body, false)
			}
		}
	}
	c.count()
	return c.history
}

// ask makes a request. One that is lost may have been done all the same.
func (c *keyed) ask(p *controlplane.ControlPlane, route, key, body int, isLost bool) {
	do := c.create
	if route == 1 {
		do = c.setTimeouts
	}
	f := keyFact{key: fmt.Sprint(route, " ", key), body: fmt.Sprint(body)}
	c.call(func() []keyFact {
		made, err := do(p, idempotency.Key(fmt.Sprint("key ", key)), key, body)
		switch {
		case isLost:
			f.is = unheard
		case fault.Has(err, fault.AgentError):
			f.is = unknown
		case err == nil:
			f.is, f.made = answered, made
		case fault.Has(err, fault.DatabaseStateConflict), fault.Has(err, fault.QueryTimeoutConflict):
			f.is = conflicted
		default:
			f.is = err.Error()
		}
		return []keyFact{f}
	})
}

func (c *keyed) create(p *controlplane.ControlPlane, k idempotency.Key, key, body int) (made string, err error) {
	got, err := p.Databases.Create(c.ctx, c.caller, databases.CreateRequest{
		Name: fmt.Sprint("db", key), DisplayName: fmt.Sprint("Number ", body), Key: k,
	})
	return string(got.Record.ID), err
}

func (c *keyed) setTimeouts(p *controlplane.ControlPlane, k idempotency.Key, _, body int) (made string, err error) {
	profile := []querytimeout.Profile{querytimeout.Short, querytimeout.Standard}[body]
	var got querytimeouts.State
	reached, err := p.Access.Reach(c.ctx, c.caller, c.db, account.Own)
	if err == nil {
		got, err = p.QueryTimeouts.Set(c.ctx, reached, profile, k)
	}
	if err != nil {
		return "", err
	}
	return string(got.Change.ID), nil
}

// count tells what there is in the end: every database and every change is that of a key.
func (c *keyed) count() {
	c.t.Helper()
	var found [2][]string
	list, _, err := c.planes[0].Databases.List(c.ctx, c.caller, ports.Page{})
	ok(c.t, err)
	for _, r := range list {
		if r.ID != c.db {
			found[0] = append(found[0], string(r.ID))
		}
	}
	ok(c.t, c.store.View(c.ctx, func(ctx context.Context, tx ports.Tx) error {
		all, err := tx.Operations().Find(ctx, ports.OperationFilter{DatabaseID: c.db, Kind: querytimeouts.Kind}, ports.Page{Limit: 100})
		for _, o := range all {
			found[1] = append(found[1], string(o.ID))
		}
		return err
	}))
	answers := map[string]string{} // what was made, by the key that it was answered for
	for _, o := range c.operations {
		if f := o.Input.(keyFact); f.is == answered {
			answers[f.made] = f.key
		}
	}
	for _, all := range found {
		for _, made := range all {
			c.call(func() []keyFact { return []keyFact{{is: executed, key: answers[made], made: made}} })
		}
	}
}

var keyTrial = trial[keyState, keyFact]{
	rules: keyRules,
	make:  keyHistories,
	kinds: []string{answered, conflicted, unknown, unheard, executed},
}

func TestARequestWithAKeyIsDoneOnce(t *testing.T) { keyTrial.holds(t) }

func TestARequestWithAKeyIsDoneOnceOnPostgreSQL(t *testing.T) { keyTrial.holdsIn(t, 1, onPostgres(t)) }

func TestBugsOfKeysAreFound(t *testing.T) {
	keyTrial.finds(t, map[string]func(parts) parts{
		"a key is not compared with its request": func(p parts) parts {
			p.store = alteredKeys{p.store, func(asked, stored idempotency.Record, fresh bool) (idempotency.Record, bool) {
				stored.Fingerprint = asked.Fingerprint
				return stored, fresh
			}}
			return p
		},
		"a key is new each time": func(p parts) parts {
			p.store = alteredKeys{p.store, func(asked, _ idempotency.Record, _ bool) (idempotency.Record, bool) { return asked, true }}
			return p
		},
	})
}

// alteredKeys is a store whose claims of keys are answered otherwise.
type alteredKeys struct {
	ports.Store
	alter func(asked, stored idempotency.Record, fresh bool) (idempotency.Record, bool)
}

// Update implements ports.Store.
func (s alteredKeys) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, alteredKeysTx{tx, s}) })
}

type alteredKeysTx struct {
	ports.Tx
	keys alteredKeys
}

func (t alteredKeysTx) Idempotency() ports.Idempotency {
	return alteredIdempotency{t.Tx.Idempotency(), t.keys}
}

type alteredIdempotency struct {
	ports.Idempotency
	keys alteredKeys
}

func (i alteredIdempotency) Claim(ctx context.Context, asked idempotency.Record) (idempotency.Record, bool, error) {
	stored, fresh, err := i.Idempotency.Claim(ctx, asked)
	stored, fresh = i.keys.alter(asked, stored, fresh)
	return stored, fresh, err
}
