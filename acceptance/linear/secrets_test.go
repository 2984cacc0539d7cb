package linear

import (
	"errors"
	"strconv"

	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

func (c *client) reveal(of id.RoleID) {
	p := c.plane()
	c.call(c.number, func() []fact {
		found, err := p.roles.Reveal(c.ctx, c.reach(p), of)
		if err != nil {
			return c.refusal(of, revealNo, err)
		}
		know(c.crowd, &c.passwords, knownPassword{found.Username, found.Password})
		return []fact{{is: revealed, shown: c.shown(found.State), password: c.history.number("password", found.Password)}}
	})
}

func (c *client) change(p *plane, of id.RoleID, k role.Kind, keyNumber int) {
	key := "change-" + strconv.Itoa(keyNumber)
	f := c.about(of, changeBegun)
	f.kind, f.key = k, c.history.number("change key", key)
	c.call(c.number, func() []fact {
		change, err := p.roles.Change(c.ctx, c.reach(p), of, k, idempotency.Key(key))
		if err != nil {
			facts := c.refusal(of, changeNo, err)
			for i := range facts {
				facts[i].kind, facts[i].key = f.kind, f.key
			}
			if facts == nil {
				return surprise(err)
			}
			return facts
		}
		know(c.crowd, &c.changes, knownChange{of, change.ID})
		f.change, f.shown.generation = c.history.number("change", string(change.ID)), int8(change.CredentialGeneration)
		return []fact{f, c.changeFact(of, change)}
	})
}

// changeFact says how far a change has come.
func (c *client) changeFact(of id.RoleID, change role.Change) fact {
	f := c.about(of, changeSeen)
	f.change, f.yes = c.history.number("change", string(change.ID)), change.Status == role.Completed
	return f
}

// read reads a change, or replays it.
func (c *client) read(k knownChange, replay bool) {
	p := c.plane()
	c.call(c.number, func() []fact {
		look := p.roles.ReadChange
		if replay {
			look = p.roles.ReplayChange
		}
		change, err := look(c.ctx, c.reach(p), k.role, k.id)
		switch {
		case fault.Has(err, fault.RoleNotFound):
			return []fact{c.about(k.role, gone)}
		case err != nil:
			return surprise(err)
		}
		return []fact{c.changeFact(k.role, change)}
	})
}

func (c *client) delete(of id.RoleID) {
	p := c.plane()
	c.call(c.number, func() []fact {
		found, err := p.roles.Delete(c.ctx, c.reach(p), of)
		return c.removalFacts(of, deleteBegun, removalEnds{deleteDone, deletePending, deleteNo, deleteKept}, found, err)
	})
}

func (c *client) remove(of id.RoleID) {
	p := c.plane()
	c.call(c.number, func() []fact {
		found, err := p.roles.Remove(c.ctx, c.reach(p), of)
		return c.removalFacts(of, removeBegun, removalEnds{removeDone, removePending, removeNo, removeKept}, found, err)
	})
}

// removalEnds are how a removal can end.
type removalEnds struct{ done, pending, refused, kept event }

func (c *client) removalFacts(
	of id.RoleID, begun event, ends removalEnds, found roles.Removal, err error,
) []fact {
	f := c.about(of, ends.done)
	switch {
	case fault.Has(err, c.conflict):
		f.is = ends.refused
	case fault.Has(err, fault.RoleDependencies):
		f.is = ends.kept
	case err != nil:
		return surprise(err)
	case !found.Done:
		f.is, f.kind = ends.pending, role.Removal
		if found.Phase == roles.RevokePhase {
			f.kind, f.change = role.Revocation, c.history.number("change", string(found.OperationID))
			know(c.crowd, &c.changes, knownChange{of, found.OperationID})
		}
	}
	return []fact{c.about(of, begun), f}
}

// logIn tries a password that was once revealed. A log-in that gets in may stay.
func (c *client) logIn(p knownPassword) {
	c.call(c.number, func() []fact {
		session, err := c.server.Connect(customer, c.db.Record.Name+".transaction", p.username, p.text)
		switch {
		case err == nil && c.dice.IntN(2) == 0:
			know(c.crowd, &c.sessions, openSession{session, p})
		case err == nil:
			session.Close()
		case !errors.Is(err, fakeagent.ErrLogInRefused):
			return surprise(err)
		}
		return []fact{{is: knocked, password: c.history.number("password", p.text), yes: err == nil}}
	})
}

// depend has the owner make something depend on a role, or take all of it away.
func (c *client) depend(p knownPassword, on bool) {
	c.call(c.number, func() []fact {
		change := c.server.DropDependencies
		if on {
			change = func(username string) bool {
				kind := []role.DependencyKind{role.GrantDependency, role.OtherDependency}[c.dice.IntN(2)] // the second: default privileges
				return c.server.AddDependency(username, role.Dependency{Kind: kind, ObjectType: "table", Name: "t"})
			}
		}
		if !change(p.username) {
			return nil // the server has no such role, by now
		}
		return []fact{{is: depends, password: c.history.number("password", p.text), yes: on}}
	})
}

// look sees whether a session is still open: as long as its password gets in, no longer.
func (c *client) look(s openSession) {
	c.call(c.number, func() []fact {
		f := fact{is: knocked, password: c.history.number("password", s.with.text), yes: s.Alive()}
		if c.history.legacy { // an operation ends sessions, too
			if !f.yes {
				return nil
			}
			f.is, f.yes = held, false
		}
		return []fact{f}
	})
}
