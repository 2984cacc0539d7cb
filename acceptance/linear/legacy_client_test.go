package linear

import (
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// beginLegacy opts in, however often that takes, and makes a role, sometimes without its CONNECT, or leaves all of that to the
// clients.
func (c *client) beginLegacy(seed uint64) {
	if seed%4 == 0 {
		return
	}
	for !c.optIn(c.planes[0]) {
	}
	c.createFrom(c.planes[0], 0, 0)
	of := c.roles[0]
	c.prepare(of)
	if seed%4 > 1 {
		c.connect(of, true)
	}
	c.admit(of)
	c.reveal(of)
}

// createKeys is how many keys of creates there are.
func (c *client) createKeys() int {
	if c.history.legacy {
		return maxRoles // few roles are made at a time, so most keys are refused
	}
	return 5
}

// knowRole adds a role to those that clients choose from.
func (c *client) knowRole(r roles.State) {
	know(c.crowd, &c.crowd.roles, r.ID)
	c.crowd.mu.Lock()
	defer c.crowd.mu.Unlock()
	if c.usernames == nil {
		c.usernames = map[id.RoleID]string{}
	}
	c.usernames[r.ID] = r.Username
}

// actLegacy makes a call that only a database with a single login has, more often than not one that takes a role further.
func (c *client) actLegacy() bool {
	of, known := c.pickRole()
	switch roll := c.dice.IntN(100); {
	case roll < 3, !known && roll < 40:
		c.onceOrTwice(func(p *plane) { c.optIn(p) })
	case roll < 12, !known:
		key := c.dice.IntN(maxRoles)
		c.onceOrTwice(func(p *plane) { c.createFrom(p, key, key) })
	case roll < 16:
		c.prepare(of)
	case roll < 22:
		c.connect(of, c.dice.IntN(3) > 0)
	case roll < 28:
		c.admit(of)
	case roll < 34:
		c.reconcile(of)
	case roll < 36:
		c.delete(of)
	default:
		return false
	}
	return true
}

// optIn reports whether the overlay is active by then. If so, its groups must have all that they are promised.
func (c *client) optIn(p *plane) (active bool) {
	c.call(c.number, func() []fact {
		overlay, err := p.LegacyRoles.OptIn(c.ctx, c.reach(p))
		begun := fact{is: optInBegun}
		switch {
		case fault.Has(err, c.conflict):
			return []fact{{is: optInNo}}
		case fault.Has(err, fault.AgentError):
			return []fact{begun}
		case err != nil:
			return surprise(err)
		}
		active = overlay.OverlayStatus == database.OverlayActive
		if active && !c.server.GroupsHave(c.db.Record.Name) {
			return surprise(errors.New("the overlay is active, and half made"))
		}
		return []fact{begun, {
			is: optedIn, yes: active,
			shown: shown{id: c.history.number("overlay", string(overlay.OverlayID)), set: int16(overlay.OverlayGeneration)},
		}}
	})
	return active
}

// leaves has opt-ins leave something half of the time.
func (c *crowd) leaves() {
	dice := rand.New(rand.NewPCG(c.seed, 5))
	c.server.LeaveOverlays(func() bool { return dice.IntN(2) == 0 })
}

func (c *client) reconcile(of id.RoleID) {
	p := c.plane()
	c.call(c.number, func() []fact {
		state, err := p.LegacyRoles.Reconcile(c.ctx, c.reach(p), of)
		switch {
		case fault.Has(err, fault.RoleNotFound):
			return []fact{c.about(of, gone)}
		case fault.Has(err, fault.AgentError):
			return nil
		case err != nil:
			return surprise(err)
		}
		return []fact{{is: reconciled, shown: c.shown(state)}}
	})
}

// connect is the owner's own statement about CONNECT of a role, or of the tables that it uses.
func (c *client) connect(of id.RoleID, on bool) {
	c.crowd.mu.Lock()
	username := c.usernames[of]
	c.crowd.mu.Unlock()
	c.call(c.number, func() []fact {
		c.server.Load(c.db.Record.Name, "CREATE TABLE t"+strconv.Itoa(c.dice.IntN(1000))+" (n int);\n")
		if !c.server.SetConnect(username, on) {
			return nil // the server does not have it yet, or any more
		}
		f := c.about(of, connects)
		f.yes = on
		return []fact{f}
	})
}
