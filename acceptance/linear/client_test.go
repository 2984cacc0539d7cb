package linear

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// crowd is what the clients of a history know together.
type crowd struct {
	*world
	*history

	mu        sync.Mutex
	roles     []id.RoleID
	usernames map[id.RoleID]string
	changes   []knownChange
	passwords []knownPassword
	sessions  []openSession
}

type knownChange struct {
	role id.RoleID
	id   id.OperationID
}

type knownPassword struct{ username, text string }

type openSession struct {
	*fakeagent.Session
	with knownPassword
}

// client is one of them.
type client struct {
	*crowd
	number int
	dice   *rand.Rand
}

// run makes a history: clients at work for some calls each, then one look at how everything has ended.
func run(t *testing.T, seed uint64, s setting, clients, calls int) *history {
	t.Helper()
	c := &crowd{world: newWorld(t, seed, s), history: newHistory(s.legacy)}
	last := &client{c, clients, rand.New(rand.NewPCG(seed, 3))}
	if s.legacy {
		c.leaves()
		last.beginLegacy(seed)
	} else {
		last.begin()
	}
	if !s.calm {
		c.network.worsen()
	}
	stop := c.background()
	operator, runs := &client{c, clients + 1, rand.New(rand.NewPCG(seed, 4))}, true
	if s.legacy {
		operator.backUp()
		runs = seed%4 > 0 || operator.disturbs(operator.lifecycle(database.Stop))
	}
	var working sync.WaitGroup
	for number := range clients {
		one := &client{c, number, rand.New(rand.NewPCG(seed, uint64(10+number)))}
		working.Go(func() {
			for range calls {
				one.act()
			}
		})
	}
	if s.legacy {
		operator.disturb(&working, runs)
	}
	working.Wait()
	stop()
	c.settle()
	last.lookBack()
	return c.history
}

// begin makes two roles and reveals their passwords, so that there is something to quarrel about.
func (c *client) begin() {
	for i := range 2 {
		c.createFrom(c.planes[0], i, i)
	}
	for _, of := range c.roles {
		c.reveal(of)
	}
}

// lookBack reads everything there is, once nothing is under way.
func (c *client) lookBack() {
	c.list(true)
	for _, of := range c.roles {
		c.reveal(of)
	}
	for _, k := range c.changes {
		c.read(k, false)
	}
	for _, p := range c.passwords {
		c.logIn(p)
	}
	for _, s := range c.sessions {
		c.look(s)
	}
}

// act makes one call.
func (c *client) act() {
	roll := c.dice.IntN(100)
	if c.history.legacy && c.actLegacy() {
		return
	}
	of, _ := c.pickRole()
	change, anyChange := pick(c, &c.changes)
	password, anyPassword := pick(c, &c.passwords)
	session, anySession := pick(c, &c.sessions)
	switch {
	case roll < 8:
		key, name := c.dice.IntN(c.createKeys()), c.dice.IntN(6)
		c.onceOrTwice(func(p *plane) { c.createFrom(p, key, name) })
	case roll < 24:
		key := c.dice.IntN(changeKeys)
		c.onceOrTwice(func(p *plane) { c.change(p, of, role.Rotation, key) })
	case roll < 30:
		key := c.dice.IntN(changeKeys)
		c.onceOrTwice(func(p *plane) { c.change(p, of, role.Revocation, key) })
	case roll < 35:
		c.delete(of)
	case roll < 38 && !c.history.legacy:
		c.remove(of)
	case roll < 54:
		c.reveal(of)
	case roll < 57:
		c.prepare(of)
	case roll < 61:
		c.admit(of)
	case roll < 64 && !c.history.legacy:
		c.rename(of)
	case roll < 72 && anyChange:
		c.read(change, c.dice.IntN(2) == 0)
	case roll < 75 && anyPassword:
		c.depend(password, c.dice.IntN(2) == 0)
	case roll < 89 && anyPassword:
		c.logIn(password)
	case roll < 94 && anySession:
		c.look(session)
	default:
		c.list(c.dice.IntN(2) == 0)
	}
}

// changeKeys is how many keys of changes there are: few enough that they meet again.
const changeKeys = 16

// onceOrTwice makes a call, or, as somebody does who clicks twice, makes it at two processes at once.
func (c *client) onceOrTwice(do func(*plane)) {
	if c.dice.IntN(2) == 0 {
		do(c.plane())
		return
	}
	var both sync.WaitGroup
	for _, p := range c.planes {
		both.Go(func() { do(p) })
	}
	both.Wait()
}

// pick draws one of what is known by now; found is false where that is nothing.
func pick[T any](c *client, list *[]T) (one T, found bool) {
	c.crowd.mu.Lock()
	defer c.crowd.mu.Unlock()
	from := *list
	if len(from) == 0 {
		return one, false
	}
	return from[c.dice.IntN(len(from))], true
}

func (c *client) plane() *plane { return c.planes[c.dice.IntN(len(c.planes))] }

// know adds to what clients choose from.
func know[T comparable](c *crowd, list *[]T, v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range *list {
		if known == v {
			return
		}
	}
	*list = append(*list, v)
}

// pickRole draws a role. With a single login most are soon removed, to make room, so it mostly is one of the last that were made.
func (c *client) pickRole() (of id.RoleID, found bool) {
	if !c.history.legacy || c.dice.IntN(4) == 0 {
		return pick(c, &c.crowd.roles)
	}
	c.crowd.mu.Lock()
	last := c.crowd.roles[max(0, len(c.crowd.roles)-2):]
	c.crowd.mu.Unlock()
	return pick(c, &last)
}

// createFrom asks for a role with one of a few keys and bodies.
func (c *client) createFrom(p *plane, key, name int) {
	q := role.Request{
		DisplayName: nameOf(name), AccessProfile: role.Custom, ConnectionLimit: 1 + name%2,
		Key: idempotency.Key("create-" + strconv.Itoa(key)),
	}
	f := fact{
		key: c.history.number("key", string(q.Key)), name: c.history.number("name", q.DisplayName),
		body: c.history.number("body", string(q.Fingerprint())),
	}
	c.call(c.number, func() []fact {
		state, err := p.roles.Create(c.ctx, c.reach(p), q)
		if err == nil {
			c.knowRole(state)
		}
		return c.createFacts(f, state, err)
	})
}

func (c *client) createFacts(f fact, state roles.State, err error) []fact {
	begun, refused, end := f, f, f
	begun.is, refused.is, end.is = createBegun, createRefused, created
	switch {
	case err == nil:
		end.shown = c.shown(state)
		return []fact{begun, end}
	case fault.Has(err, fault.AgentError):
		return []fact{begun}
	case c.history.legacy && fault.Has(err, c.conflict):
		return []fact{refused}
	case fault.Has(err, c.conflict), fault.Has(err, fault.RoleNotFound):
		// A set-up that a removal has overtaken is refused too, although it was begun.
		begun.is, refused.yes = createTried, true
		return []fact{begun, refused}
	}
	return surprise(err)
}

func surprise(err error) []fact { return []fact{{is: unexpected, note: err.Error()}} }

func nameOf(name int) string { return "name " + strconv.Itoa(name) }

// about is a fact about a role.
func (c *client) about(of id.RoleID, is event) fact {
	return fact{is: is, shown: shown{id: c.history.number("role", string(of))}}
}

// refusal are the facts of an error: the conflict that the call may have, or a role that was removed. An agent that could not be
// asked tells nothing.
func (c *client) refusal(of id.RoleID, conflict event, err error) []fact {
	switch fault.CodeOf(err) {
	case c.conflict:
		return []fact{c.about(of, conflict)}
	case fault.RoleNotFound:
		return []fact{c.about(of, gone)}
	case fault.AgentError:
		return nil
	}
	return surprise(err)
}

func (c *client) prepare(of id.RoleID) {
	p := c.plane()
	c.call(c.number, func() []fact {
		state, err := p.roles.Prepare(c.ctx, c.reach(p), of)
		return c.setUpFacts(of, setUpEvents{prepareBegun, prepareTried, prepareNo}, state, err)
	})
}

func (c *client) admit(of id.RoleID) {
	p := c.plane()
	c.call(c.number, func() []fact {
		state, err := p.roles.Admit(c.ctx, c.reach(p), of)
		return c.setUpFacts(of, setUpEvents{admitBegun, admitTried, admitNo}, state, err)
	})
}

// setUpEvents are a step of a set-up that was begun, that may have been, and that was refused.
type setUpEvents struct{ begun, tried, no event }

func (c *client) setUpFacts(of id.RoleID, is setUpEvents, state roles.State, err error) []fact {
	switch {
	case err == nil:
		return []fact{c.about(of, is.begun), {is: seen, shown: c.shown(state)}}
	case fault.Has(err, fault.ConnectGrantRequired) && c.history.legacy:
		return []fact{c.about(of, is.begun), c.about(of, grantMissing)}
	case c.history.legacy: // somebody else may have overtaken it
		return append([]fact{c.about(of, is.tried)}, c.refusal(of, is.no, err)...)
	}
	return c.refusal(of, is.no, err)
}

func (c *client) rename(of id.RoleID) {
	p, name := c.plane(), nameOf(c.dice.IntN(6))
	number := c.history.number("name", name)
	c.call(c.number, func() []fact {
		state, err := p.roles.Rename(c.ctx, c.reach(p), of, name)
		if err != nil {
			facts := c.refusal(of, renameNo, err)
			for i := range facts {
				facts[i].name = number
			}
			return facts
		}
		return []fact{{is: renamed, name: number, shown: c.shown(state)}}
	})
}

func (c *client) list(revoked bool) {
	p := c.plane()
	c.call(c.number, func() []fact {
		states, err := p.roles.List(c.ctx, c.reach(p), revoked)
		if err != nil {
			return surprise(err)
		}
		f := fact{is: listed}
		if revoked {
			f.is = listedAll
		}
		for _, state := range states {
			c.knowRole(state)
			one := c.shown(state)
			one.set = 0 // read before the roles
			f.list = append(f.list, one)
		}
		return []fact{f}
	})
}
