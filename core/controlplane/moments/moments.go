// Package moments says as of which moments databases can be had back.
package moments

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Moments asks the archives of database servers, on behalf of those who see a database.
type Moments struct{ base *base.Base }

// New makes the use cases.
func New(p *base.Base) *Moments { return &Moments{base: p} }

// Days is how far back the plan of an account reaches; 0: it has no recovery to a point in time.
func (m *Moments) Days(of account.Account) int { return m.base.PITR.Days(of) }

// Reach finds a database through gates, or one that is deleted and not purged, which also needs the gate of those.
// DATABASE_NOT_FOUND, FEATURE_NOT_AVAILABLE, FORBIDDEN: as for Access.Reach.
func (m *Moments) Reach(
	ctx context.Context, c access.Caller, db id.DatabaseID, action account.Action, gates ...rollout.Gate,
) (access.Reached, error) {
	found, err := access.Find(ctx, m.base.Store, c, gates, base.ErrDatabaseNotFound(),
		func(ctx context.Context, tx ports.Tx, p access.Passage) (access.Reached, error) {
			r, err := p.Reach(ctx, tx, db)
			if !errors.Is(err, ports.ErrNoRow) {
				return r, err
			}
			r, err = p.ReachDeleted(ctx, tx, db)
			return r.Through(append([]rollout.Gate{rollout.DeletedDatabases}, gates...)...), err
		})
	if err != nil {
		return access.Reached{}, err
	}
	return found, found.Permit(action)
}

// Shown is what is known of the moments of a database.
type Shown struct {
	recovery.Window // what of the archive is the customer's
	Archived        bool
	Days            int // see Moments.Days
	Proof
}

// Proof is what drills have proven.
type Proof struct {
	// LastDrill is the last drill of the database or, where it had none, of another one of its server; nil: neither had one.
	LastDrill *drill.Drill
	// ProvenFrom is the earliest moment of the window that was had back of any database of the server; nil: none was.
	ProvenFrom *time.Time
}

// Window returns as of which moments a database can be had back now. A server without an archive, and a plan without recovery to
// a point in time, are no errors: there is nothing then. DATABASE_STATE_CONFLICT: the database is deleted and cannot be
// recovered any more, or its server does not have it. AGENT_ERROR: the server cannot say now. AGENT_ROUTE_UNAVAILABLE: its agent
// is to be updated.
func (m *Moments) Window(ctx context.Context, r access.Reached) (s Shown, err error) {
	if err := r.Permit(account.See); err != nil {
		return s, err
	}
	claim, err := m.claim(ctx, r)
	if err != nil {
		return s, err
	}
	known, err := m.ask(ctx, r)
	if err != nil {
		return s, err
	}
	s = Shown{Window: claim.Of(known.Window, m.base.Clock.Now()), Archived: known.Archived, Days: claim.Days}
	if s.Empty() {
		return s, nil
	}
	s.Proof, err = m.proof(ctx, r, s.Window)
	return s, err
}

// proof reads what drills have proven of a window.
func (m *Moments) proof(ctx context.Context, r access.Reached, w recovery.Window) (p Proof, err error) {
	server, db := r.Record().ServerID, r.Record().ID
	err = m.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		last, err := tx.Drills().Last(ctx, ports.DrillFilter{DatabaseID: db})
		if errors.Is(err, ports.ErrNoRow) {
			last, err = tx.Drills().Last(ctx, ports.DrillFilter{ServerID: server})
		}
		switch {
		case err == nil:
			p.LastDrill = &last
		case !errors.Is(err, ports.ErrNoRow):
			return err
		}
		p.ProvenFrom, err = tx.Drills().ProvenFrom(ctx, server, w.From)
		return err
	})
	return p, err
}

// Admit decides about a moment, whatever the caller wants to do with it. The errors are those of recovery.Claim.Admits and of
// Window.
func (m *Moments) Admit(ctx context.Context, r access.Reached, at time.Time) error {
	claim, err := m.claim(ctx, r)
	if err == nil {
		err = claim.Entitled()
	}
	if err != nil {
		return err
	}
	known, err := m.ask(ctx, r)
	if err != nil {
		return err
	}
	return claim.Admits(at, known.Archived, known.Window, m.base.Clock.Now())
}

// claim is that of the account that the database belongs to.
func (m *Moments) claim(ctx context.Context, r access.Reached) (c recovery.Claim, err error) {
	c.Made = r.Record().CreatedAt
	err = m.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		owner, err := tx.Accounts().Get(ctx, r.Record().AccountID)
		if err != nil {
			return err
		}
		c.Days = m.Days(owner)
		if !r.Record().Status.Gone() {
			return nil
		}
		scene, err := tx.Deletions().Get(ctx, r.Record().ID)
		if err != nil {
			return base.NotFound(err, base.ErrDatabaseNotFound())
		}
		c.Deleted = &scene.Tombstone.DeletedAt
		return scene.AdmitsRecovery(m.base.Clock.Now())
	})
	return c, err
}

func (m *Moments) ask(ctx context.Context, r access.Reached) (known command.RecoverableTime, err error) {
	release, err := r.MayCall(ctx, m.base)
	if err != nil {
		return known, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, m.base.RoleWait)
	defer cancel()
	agent, err := m.base.AgentOf(ctx, r.Record().ServerID)
	if err != nil {
		return known, err
	}
	known, err = ports.Ask(ctx, agent, command.RecoveryWindow{DatabaseID: r.Record().ID})
	switch {
	case base.Unserved(err):
		return known, fault.Wrap(err, fault.AgentRouteUnavailable,
			"recovery to a point in time is unavailable until the agent of the database server is updated")
	case command.RefusedFor(err, command.ReasonNotFound):
		return known, fault.Wrap(err, fault.DatabaseStateConflict,
			"the database server does not have the database, whose status is %s", r.Record().Status)
	case err != nil:
		return known, fault.Wrap(err, fault.AgentError, "the database server cannot say now what it can have back; try again")
	}
	return known, nil
}
