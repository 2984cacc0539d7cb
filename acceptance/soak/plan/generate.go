package plan

import (
	"math/rand/v2"
	"slices"
)

// Size says how much a plan holds.
type Size struct {
	Actions, Rounds, Accounts int
	// Disturbed is after how many actions something goes wrong, on average.
	Disturbed int
}

// Small is what "make check" has time for.
var Small = Size{Actions: 60, Rounds: 2, Accounts: 3, Disturbed: 6}

// Whole is a seed of "make soak".
var Whole = Size{Actions: 1000, Rounds: 8, Accounts: 6, Disturbed: 8}

// thing is something that the actions so far have made, if all went well.
type thing struct {
	kind    Thing
	phase   Phase
	made    int    // the step
	in      *thing // the database that it belongs to
	account int
}

// usable reports whether what it belongs to is open.
func (t *thing) usable() bool { return t.in == nil || t.in.phase == There || t.in.phase == Opted }

// generator makes steps, and remembers what they would make.
type generator struct {
	*rand.Rand
	size   Size
	things []*thing
}

// Make makes the plan of a seed.
func Make(seed uint64, size Size) Plan {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x736f616b)), size: size}
	p := Plan{Seed: seed, Accounts: size.Accounts}
	add := func(s Step) {
		s.Number = len(p.Steps) + 1
		p.Steps = append(p.Steps, s)
	}
	for n := range size.Actions {
		round := n * size.Rounds / size.Actions
		// Whoever starts a seed has to see it begin well: each account has a database before something goes wrong.
		if n >= 2*size.Accounts && g.IntN(size.Disturbed) == 0 {
			add(Step{Round: round, Disturbance: disturb(g.Rand)})
		}
		add(Step{Round: round, Action: g.action(n, len(p.Steps)+1)})
	}
	return p
}

// action makes one: first a database and something in it for each account, and then whatever comes.
func (g *generator) action(n, number int) *Action {
	if n < 2*g.size.Accounts {
		account, do := n/2, Do("create a database")
		if n%2 == 1 {
			do = "write"
		}
		return g.of(Of(do), account, number)
	}
	for {
		c := g.choose()
		if a := g.of(c, g.IntN(g.size.Accounts), number); a != nil {
			return a
		}
	}
}

// choose takes a capability by its weight.
func (g *generator) choose() Capability {
	sum := 0
	for _, c := range Catalog {
		sum += c.Weight
	}
	at := g.IntN(sum)
	for _, c := range Catalog {
		if at -= c.Weight; at < 0 {
			return c
		}
	}
	panic("the weights are as many as their sum")
}

// often is after how many tries something is asked of what it cannot be asked of, such as a backup of a deleted database: that
// has to be refused.
const often = 25

// of makes an action of a capability, or nil where there is nothing to do it to.
func (g *generator) of(c Capability, account, number int) *Action {
	a := &Action{Do: c.Do, Account: account, Host: g.IntN(2), Choice: g.Uint64(), Waits: !c.Never && g.IntN(2) == 0}
	a.Way = g.way(c)
	var on *thing
	if len(c.On) > 0 {
		anyhow := g.IntN(often) == 0
		var fit []*thing
		for _, t := range g.things {
			if t.account == account && slices.Contains(c.On, t.kind) && (anyhow || t.usable() && slices.Contains(c.In, t.phase)) {
				fit = append(fit, t)
			}
		}
		if len(fit) == 0 {
			return nil
		}
		on = pick(g.Rand, fit)
		a.On = on.made
		if on.in != nil {
			a.In = on.in.made
		}
		if c.Leaves != "" && slices.Contains(c.In, on.phase) {
			on.phase = c.Leaves
		}
	}
	if c.Makes != Nothing {
		g.things = append(g.things, &thing{kind: c.Makes, phase: There, made: number, in: home(c, on), account: account})
	}
	return a
}

// home is the database that what is made belongs to.
func home(c Capability, on *thing) *thing {
	if slices.Contains([]Thing{Database, Single, Preview}, c.Makes) {
		return nil
	}
	return on
}

// way takes one of the ways, which are in no order of their own.
func (g *generator) way(c Capability) Way {
	var ways []Way
	for _, w := range []Way{API, Dashboard, Svc, Operator, SQL} {
		if _, has := c.Ways[w]; has {
			ways = append(ways, w)
		}
	}
	return pick(g.Rand, ways)
}

// Of is the capability of an action.
func Of(do Do) Capability {
	for _, c := range Catalog {
		if c.Do == do {
			return c
		}
	}
	panic("there is no capability " + string(do))
}
