package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/ports"
)

// A session is of use from its log-in to its end, and not a moment longer: whoever was told that it has ended, by signing out, by
// another password or by a second factor, knows that nothing is done in its name.

// stayFact is what somebody has seen of one person's sessions.
type stayFact struct {
	is       string
	session  int
	password string
}

func (f stayFact) kind() string { return f.is }
func (stayFact) about() string  { return "a person" }

const (
	entered      = "logged in"
	entersLater  = "logged in but for the second factor"
	keptOut      = "not logged in: another password"
	passedFactor = "gave the second factor"
	used         = "of use"
	useless      = "of no use"
	left         = "signed out"
	othersEnded  = "has ended all others"
	changed      = "has changed the password, which ends all others"
	factorAdded  = "has set up a second factor, which ends all others"
	factorGone   = "has removed the second factor"
	timeOver     = "idle for too long"
)

// sessionSet has a bit for each session, by its number.
type sessionSet uint64

func (s sessionSet) has(session int) bool           { return s>>session&1 == 1 }
func (s sessionSet) with(session int) sessionSet    { return s | 1<<session }
func (s sessionSet) without(session int) sessionSet { return s &^ (1 << session) }
func (s sessionSet) onlyOf(session int) sessionSet  { return s & (1 << session) }

type stayState struct {
	open, waiting sessionSet
	password      string // empty: the first one
	factor        bool
}

func stayRules(s stayState, f stayFact) []stayState {
	in := s.open.has(f.session)
	current := f.password == s.password || s.password == "" && f.password == firstPassword
	switch f.is {
	case entered:
		s.open = s.open.with(f.session)
		return only(s, current && !s.factor)
	case entersLater:
		s.waiting = s.waiting.with(f.session)
		return only(s, current && s.factor)
	case keptOut:
		return only(s, !current)
	case passedFactor:
		waits := s.waiting.has(f.session)
		s.waiting, s.open = s.waiting.without(f.session), s.open.with(f.session)
		return only(s, waits && s.factor)
	case used:
		return only(s, in)
	case useless:
		return only(s, !in)
	case left:
		s.open, s.waiting = s.open.without(f.session), s.waiting.without(f.session)
		return only(s, true)
	case timeOver:
		s.open, s.waiting = 0, 0
		return only(s, true)
	case factorGone:
		had := s.factor
		s.factor = false
		return only(s, in && had)
	}
	s.open, s.waiting = s.open.onlyOf(f.session), 0 // all others end
	switch f.is {
	case othersEnded:
		return only(s, in)
	case changed:
		s.password = f.password
		return only(s, in)
	case factorAdded:
		had := s.factor
		s.factor = true
		return only(s, in && !had)
	}
	return nil
}

const firstPassword = "the first password"

// crowd are the clients of one person.
type crowd struct {
	*world
	*history[stayFact]

	mu        sync.Mutex
	sessions  []people.Entered
	callers   []access.Caller // who were admitted once
	passwords []string
	recovery  []string // codes that nobody has used
}

func keep[T any](c *crowd, list *[]T, v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, v)
}

func oneOf[T any](c *crowd, dice *rand.Rand, list *[]T) (one T, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(*list) == 0 {
		return one, false
	}
	return pick(dice, *list), true
}

// stays are histories of two halves, between which nobody does anything for too long.
func stays(t *testing.T, seed uint64, s setting) *history[stayFact] {
	c := &crowd{world: newWorld(t, seed, s), history: &history[stayFact]{}, passwords: []string{firstPassword}}
	hash := must(fakepasswords.Hasher{}.Hash(firstPassword, [16]byte{}))(t)
	ok(t, c.store.Update(c.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Credentials().SetPassword(ctx, c.owner.OwnerID, hash)
	}))
	for half := range uint64(2) {
		together(seed+half<<32, 4, 12, func(_ int, dice *rand.Rand) { c.act(pick(dice, c.planes), dice) })
		for _, in := range c.sessions {
			c.use(c.planes[0], in)
		}
		if half == 0 {
			c.clock.Advance(person.Idle)
			c.call(func() []stayFact { return []stayFact{{is: timeOver}} })
		}
	}
	return c.history
}

func (c *crowd) act(p *controlplane.ControlPlane, dice *rand.Rand) {
	in, _ := oneOf(c, dice, &c.sessions)
	by, admitted := oneOf(c, dice, &c.callers)
	switch roll := dice.IntN(20); {
	case roll < 4:
		c.logIn(p, dice)
	case roll < 6:
		c.giveFactor(p, in)
	case roll < 12 || !admitted:
		c.use(p, in)
	case roll < 14:
		c.leave(p, in)
	case roll < 15:
		c.writes(by, stayFact{is: othersEnded}, func() error { return p.People.EndOthers(c.ctx, by) })
	case roll < 17:
		password := c.newPassword()
		c.writes(by, stayFact{is: changed, password: password}, func() error {
			_, err := p.People.ChangePassword(c.ctx, by, password, "")
			return err
		})
	case roll < 19:
		c.addFactor(p, by)
	default:
		c.writes(by, stayFact{is: factorGone}, func() error { return p.People.RemoveFactor(c.ctx, by) })
	}
}

// newPassword is one that nobody has had before.
func (c *crowd) newPassword() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	password := fmt.Sprint("another password ", len(c.passwords))
	c.passwords = append(c.passwords, password)
	return password
}

func (c *crowd) logIn(p *controlplane.ControlPlane, dice *rand.Rand) {
	password, _ := oneOf(c, dice, &c.passwords)
	c.call(func() []stayFact {
		in, err := p.People.LogIn(c.ctx, people.Credentials{Email: ownersEmail, Password: password}, c.at())
		switch {
		case fault.Has(err, fault.Unauthorized):
			return []stayFact{{is: keptOut, password: password}}
		case err != nil:
			return c.surprise(err)
		}
		keep(c, &c.sessions, in)
		f := stayFact{is: entered, session: c.numberOf(in), password: password}
		if in.Session.Status == person.AwaitsFactor {
			f.is = entersLater
		}
		return []stayFact{f}
	})
}

// giveFactor uses a recovery code up.
func (c *crowd) giveFactor(p *controlplane.ControlPlane, in people.Entered) {
	c.mu.Lock()
	if len(c.recovery) == 0 {
		c.mu.Unlock()
		return
	}
	code := c.recovery[0]
	c.recovery = c.recovery[1:]
	c.mu.Unlock()
	c.call(func() []stayFact {
		proved, err := p.People.GiveFactor(c.ctx, in.Token, code, c.at())
		switch {
		case fault.Has(err, fault.Unauthorized): // the code may be of a factor that is no more
			return nil
		case err != nil:
			return c.surprise(err)
		}
		keep(c, &c.sessions, proved)
		return []stayFact{{is: passedFactor, session: c.numberOf(proved)}}
	})
}

// use makes a request with a session. The token of before the second factor is worth nothing, and says nothing of the session.
func (c *crowd) use(p *controlplane.ControlPlane, in people.Entered) {
	c.call(func() []stayFact {
		visit := access.Visit{Token: in.Token, Class: ratelimit.Read, Client: customer, RequestID: "request"}
		admission, err := p.Access.AdmitPerson(c.ctx, visit)
		switch {
		case err == nil:
			keep(c, &c.callers, admission.Caller)
			return []stayFact{{is: used, session: c.numberOf(in)}}
		case !fault.Has(err, fault.Unauthorized):
			return c.surprise(err)
		case in.Session.Status == person.AwaitsFactor:
			return nil
		}
		return []stayFact{{is: useless, session: c.numberOf(in)}}
	})
}

func (c *crowd) leave(p *controlplane.ControlPlane, in people.Entered) {
	c.call(func() []stayFact {
		if err := p.People.LogOut(c.ctx, in.Token); err != nil {
			return c.surprise(err)
		}
		if in.Session.Status == person.AwaitsFactor { // its token may have been another one by then
			return nil
		}
		return []stayFact{{is: left, session: c.numberOf(in)}}
	})
}

// writes does something in the name of a session that was of use once.
func (c *crowd) writes(by access.Caller, f stayFact, do func() error) {
	f.session = c.number(string(by.Session.ID))
	c.call(func() []stayFact {
		switch err := do(); {
		case err == nil:
			return []stayFact{f}
		case fault.Has(err, fault.Unauthorized):
			return []stayFact{{is: useless, session: f.session}}
		case fault.Has(err, fault.ValidationError), fault.Has(err, fault.LoginRequired):
			return nil // there is a factor, or none; or it was half a day ago
		default:
			return c.surprise(err)
		}
	})
}

func (c *crowd) addFactor(p *controlplane.ControlPlane, by access.Caller) {
	secret, err := p.People.BeginFactor(c.ctx, by)
	if err != nil {
		return
	}
	c.writes(by, stayFact{is: factorAdded}, func() error {
		codes, err := p.People.ConfirmFactor(c.ctx, by, secret.Code(c.clock.Now().Unix()/30))
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.recovery = codes
		}
		return err
	})
}

func (c *crowd) at() people.Client {
	return people.Client{Address: customer, Agent: "a browser", RequestID: "request"}
}

func (c *crowd) numberOf(in people.Entered) int { return c.number(string(in.Session.ID)) }

// surprise is a fact that nothing explains.
func (c *crowd) surprise(err error) []stayFact { return []stayFact{{is: err.Error()}} }

var stayTrial = trial[stayState, stayFact]{
	rules: stayRules,
	make:  stays,
	kinds: []string{
		entered, entersLater, keptOut, passedFactor, used, useless, left, othersEnded, changed, factorAdded, factorGone, timeOver,
	},
}

func TestAnEndedSessionIsOfNoUse(t *testing.T) { stayTrial.holds(t) }

func TestAnEndedSessionIsOfNoUseOnPostgreSQL(t *testing.T) { stayTrial.holdsIn(t, 1, onPostgres(t)) }

func TestBugsOfSessionsAreFound(t *testing.T) {
	stayTrial.finds(t, map[string]func(parts) parts{
		"a cache knows sessions that have ended": func(p parts) parts {
			p.store = &sessionCache{Store: p.store, known: map[token.Hash]cachedSession{}}
			return p
		},
		"of all other sessions, one ends": func(p parts) parts {
			p.store = oneEnds{p.store}
			return p
		},
	})
}
