// Package moves moves databases to other servers while they serve.
package moves

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Moves moves databases.
type Moves struct {
	base      *base.Base
	roles     Roles
	rehearsed Rehearsed
}

// Roles are the additional roles of a database as a server is to make them.
type Roles func(ctx context.Context, p *base.Base, db id.DatabaseID) ([]provision.Role, error)

// Rehearsed refuses a move to a server of another version of PostgreSQL where no rehearsal of it counts, for the database as its
// agent has described it: VALIDATION_ERROR on "to". Of one that nobody has asked about, the schema is taken to be what was
// rehearsed.
type Rehearsed func(
	ctx context.Context, tx ports.Tx, r database.Record, to server.Server, m command.Movable,
) error

// New makes the use cases, and registers their kind.
func New(p *base.Base, roles Roles, rehearsed Rehearsed) *Moves {
	m := &Moves{base: p, roles: roles, rehearsed: rehearsed}
	m.register()
	m.registerForwards()
	return m
}

// Request asks for a move.
type Request struct {
	DatabaseID id.DatabaseID
	To         id.ServerID
	Closed     bool // dump and load, and keep customers out meanwhile
	OrClosed   bool // only where the database cannot be moved while it serves
	// Forward is for how long the server that is left sends on who still comes; 0: not at all.
	Forward time.Duration
}

// Movable is what is in the way of moving a database while it serves.
type Movable struct {
	Record database.Record
	command.Movable
	// ClosedFor is for how long a closed move keeps customers out, as estimated.
	ClosedFor time.Duration
}

// Movable says what is in the way of moving a database. DATABASE_NOT_FOUND. AGENT_ERROR: its server does not answer.
func (m *Moves) Movable(ctx context.Context, db id.DatabaseID) (found Movable, err error) {
	if found.Record, err = m.base.Record(ctx, db); err != nil || found.Record.Status.Gone() {
		return found, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	agent, err := m.base.AgentOf(ctx, found.Record.ServerID)
	if err != nil {
		return found, err
	}
	found.Movable, err = ports.Ask(ctx, agent, command.AskMovable{DatabaseID: db})
	if err != nil {
		return found, fault.Wrap(err, fault.AgentError, "the server of the database cannot say whether it can be moved: %s",
			base.WhyRefused(err))
	}
	found.ClosedFor = move.ClosedFor(found.SizeBytes)
	return found, nil
}

// MostForward is for how long a server may send on at most.
const MostForward = 90 * 24 * time.Hour

// Order queues a move. DATABASE_NOT_FOUND, DATABASE_STATE_CONFLICT. VALIDATION_ERROR: on "forward"; on "to", the server cannot
// take it, or is of a version of PostgreSQL to which the database may not move, or has not been rehearsed to; on "closed", it
// cannot be followed, and why. AGENT_ERROR: one of the agents does not answer.
func (m *Moves) Order(ctx context.Context, q Request, by operation.Order) (o operation.Operation, err error) {
	if q.Forward < 0 || q.Forward > MostForward {
		return o, fault.Invalid("forward", "must be between 0 and %d days", MostForward/(24*time.Hour))
	}
	found, err := m.Movable(ctx, q.DatabaseID)
	if err != nil {
		return o, err
	}
	to, inTheWay, err := m.reached(ctx, q.To)
	if err != nil {
		return o, err
	}
	if inTheWay = append(inTheWay, found.Obstacles...); len(inTheWay) > 0 {
		if q.Closed = q.Closed || q.OrClosed; !q.Closed {
			return o, fault.Invalid("closed", "the database cannot be moved while it serves: %s; a closed move takes about %s",
				Obstacles(inTheWay), found.ClosedFor)
		}
	}
	err = m.base.UpdateStored(ctx, q.DatabaseID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := m.admits(ctx, tx, locked, to, found.Movable); err != nil {
			return err
		}
		taken, err := tx.Backups().Names(ctx, locked.ID)
		if err != nil {
			return err
		}
		o = m.base.Work.Queued(locked, Kind, operation.Encode(move.Input{
			From: locked.ServerID, To: to.ID, Closed: q.Closed, SizeBytes: found.SizeBytes, Forward: q.Forward,
			Filename: backup.FreeFilename(m.base.Clock.Now(), taken),
		}), work.Origin{Actor: audit.Operator})
		o.OtherID = to.ID
		if err := m.base.SealPeerToken(&o); err != nil {
			return err
		}
		if err := tx.Operations().Add(ctx, o); err != nil {
			return err
		}
		from, err := tx.Servers().Get(ctx, locked.ServerID)
		if err != nil {
			return err
		}
		return m.base.Audit(ctx, tx, locked, audit.Operator, audit.MoveRequested, audit.Details{
			"operationId": string(o.ID), "operator": by.By, "reason": by.Reason, "from": from.Name, "to": to.Name,
		})
	})
	if err == nil {
		m.base.Work.Reserved(Kind)
	}
	return o, err
}

// reached is a server whose agent answers, and what keeps databases from coming to it while they serve.
func (m *Moves) reached(ctx context.Context, of id.ServerID) (s server.Server, inTheWay []command.Obstacle, err error) {
	s, agent, err := m.base.ServerOf(ctx, of)
	if s.ID == "" {
		return s, nil, base.NotFound(err, fault.Invalid("to", "does not exist"))
	}
	var can command.Capabilities
	if err == nil {
		can, err = ports.Ask(ctx, agent, command.AskCapabilities{})
	}
	if err == nil {
		err = base.CheckProtocol(can)
	}
	if err != nil {
		return s, nil, fault.Wrap(err, fault.AgentError, "the agent of %s does not answer: %s", s.Name, base.WhyRefused(err))
	}
	if can.NotLogical != "" {
		inTheWay = []command.Obstacle{{Kind: command.Other, Object: s.Name + " cannot follow it: " + can.NotLogical}}
	}
	return s, inTheWay, nil
}

func (m *Moves) admits(
	ctx context.Context, tx ports.Tx, locked database.Record, to server.Server, is command.Movable,
) error {
	if err := move.Admits(locked.Status); err != nil {
		return err
	}
	if locked.ServerID == to.ID {
		return fault.Invalid("to", "is the server that has the database already")
	}
	if err := base.Idle(ctx, tx, locked.ID); err != nil {
		return err
	}
	room, err := tx.Servers().Room(ctx, to.ID, locked.Name)
	switch {
	case err != nil:
		return base.NotFound(err, fault.Invalid("to", "does not exist"))
	case room.Named:
		return fault.Invalid("to", "%s has a database of the name %s", to.Name, locked.Name)
	}
	if why := room.Refuses(locked.ReservedConnections(), room.PostgresVersion); why != "" {
		return fault.Invalid("to", "%s", why)
	}
	if err := move.MayBecome(locked, room.PostgresVersion); err != nil || room.PostgresVersion == locked.PostgresVersion {
		return err
	}
	return m.rehearsed(ctx, tx, locked, room.Server, is)
}

// Obstacles says in one line what is in the way.
func Obstacles(list []command.Obstacle) string {
	const most = 3
	var texts []string
	for _, o := range list[:min(len(list), most)] {
		texts = append(texts, strings.TrimSpace(obstacleTexts[o.Kind]+" "+o.Object))
	}
	if more := len(list) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// ObstacleText says what an obstacle is.
func ObstacleText(k command.ObstacleKind) string { return obstacleTexts[k] }

var obstacleTexts = map[command.ObstacleKind]string{
	command.NoIdentity:   "rows cannot be told apart (no primary key or replica identity) in",
	command.Unlogged:     "changes are not logged of",
	command.LargeObjects: "there are too many large objects",
	command.Materialized: "what a refresh makes does not come along of",
	command.NotLogical:   "its server cannot be followed:",
	command.Other:        "",
}
