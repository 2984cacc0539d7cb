package overlay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

const (
	// overlayTime is for how long a command takes turns. What is left then is for the next one.
	overlayTime = 10 * time.Second
	// overlayPause is between two turns; other work on the database comes in there.
	overlayPause = 200 * time.Millisecond
	// turnTime is when a turn takes up no further object, turnBound when it is broken off.
	turnTime  = time.Second
	turnBound = 3 * time.Second
)

// ensureOverlay makes the group roles of a database with a single login and gives them their rights inside it, without keeping
// a customer waiting.
func (x *Overlay) ensureOverlay(
	ctx context.Context, e protocol.Command, c command.EnsureOverlay,
) (none command.None, err error) {
	crash.Point(crash.OverlayAdmitted)
	if err := x.makeGroups(ctx, string(c.DatabaseID)); err != nil {
		return none, err
	}
	crash.Point(crash.OverlayGroups)
	err = x.InTurns(ctx, func(ctx context.Context) (left string, err error) {
		unlock := x.ledger.Locks.Try(ledger.DatabaseResource(string(c.DatabaseID)))
		if unlock == nil {
			return "other work on the database is under way", nil
		}
		defer unlock()
		d, err := x.ledger.InService(ctx, string(c.DatabaseID))
		if err == nil {
			left, err = x.spreadRights(ctx, d)
		}
		return left, err
	})
	if err != nil {
		return none, err
	}
	crash.Point(crash.OverlayGranted)
	return ledger.Conclude(ctx, x.ledger, e, none, crash.OverlayReply)
}

// makeGroups makes the groups that are missing, with their rows, and with the members that a lost one had.
func (x *Overlay) makeGroups(ctx context.Context, id string) error {
	release, err := x.ledger.Locks.Take(ctx, ledger.DatabaseResource(id))
	if err != nil {
		return err
	}
	defer release()
	d, err := x.ledger.InService(ctx, id)
	if err != nil {
		return err
	}
	if d.RoleModel != string(database.SingleLogin) {
		return command.Refuse(command.ReasonInvalid, "the database has managed roles")
	}
	standing, err := x.StandingGroups(ctx, d)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(Groups(d.Names()), func(g Role) bool { return slices.Contains(standing, g.Name) })
	if len(missing) == 0 {
		return nil
	}
	s := []string{ledger.Soon, "UPDATE ledger.database SET overlay_xact = NULL WHERE id = " + pg.Quote(d.ID)}
	for _, g := range missing {
		s = append(s, fmt.Sprintf("DELETE FROM ledger.role WHERE name = %s AND database_id = %s", pg.Quote(g.Name), pg.Quote(d.ID)),
			"CREATE ROLE "+pg.Ident(g.Name)+" NOLOGIN"+Harmless)
	}
	s = append(s, Mark(d.ID, missing...))
	for _, g := range missing {
		members, err := x.formerMembers(ctx, d, g.Name)
		if err != nil {
			return err
		}
		for _, m := range members {
			s = append(s, Join(g.Name, m))
		}
	}
	err = pg.Atomically(ctx, x.db, s...)
	switch pg.State(err) {
	case ledger.DuplicateObject, ledger.UniqueViolation:
		return command.Refuse(command.ReasonNameTaken, "the server has a group role of the database's that is not ours")
	}
	return err
}

// StandingGroups names the group roles of a database that stand and are ours.
func (x *Overlay) StandingGroups(ctx context.Context, d ledger.Database) ([]string, error) {
	const query = `SELECT r.rolname FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid AND r.rolname = l.name
		WHERE l.database_id = $1 AND l.part IN ('read_group', 'write_group')`
	return pg.Column(ctx, x.db, query, d.ID)
}

// formerMembers names the additional roles that were in a group of a database before it was lost.
func (x *Overlay) formerMembers(ctx context.Context, d ledger.Database, group string) ([]string, error) {
	const query = `SELECT r.rolname FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid AND r.rolname = l.name
		WHERE l.database_id = $1 AND l.member_of = $2`
	return pg.Column(ctx, x.db, query, d.ID, group)
}

// InTurns repeats a turn, which says what it has to leave, until that is nothing. Who leaves something waits for its next turn
// behind all others who have something to spread.
func (x *Overlay) InTurns(ctx context.Context, turn func(context.Context) (left string, err error)) error {
	for began := time.Now(); ; {
		var left string
		err := x.ledger.Spreading.Run(ctx, func() error {
			return x.ledger.Looking.Run(ctx, func() error {
				return x.ledger.Inside.Run(ctx, func() (err error) {
					bounded, cancel := context.WithTimeout(ctx, turnBound)
					defer cancel()
					left, err = turn(bounded)
					if why := obstacle(err); why != "" {
						left, err = why, nil
					} else if err != nil && bounded.Err() != nil && ctx.Err() == nil {
						left, err = tooLong, nil
					}
					return err
				})
			})
		})
		switch {
		case err != nil || left == "":
			return err
		case time.Since(began) > overlayTime:
			return command.Refuse(command.ReasonUnfinished, "the group roles do not have all rights yet: %s; send the command again", left)
		}
		crash.Point(crash.OverlayLeft)
		if err := loop.Wait(ctx, overlayPause); err != nil {
			return err
		}
	}
}

// olderWriters counts the transactions in a database that may have made something before the default privileges stood: it
// appears without the rights when they end. What is made without a transaction id yet is about to get one: the mark waits.
func (x *Overlay) olderWriters(ctx context.Context, d ledger.Database) (int, error) {
	const mark = `UPDATE ledger.database d SET overlay_xact = pg_current_xact_id()
		WHERE d.id = $1 AND d.overlay_xact IS NULL AND NOT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.database = d.oid AND l.classid = 'pg_namespace'::regclass AND a.backend_xid IS NULL)`
	if _, err := x.db.ExecContext(ctx, mark, d.ID); err != nil {
		return 0, err
	}
	const query = `SELECT CASE WHEN d.overlay_xact IS NULL THEN 1 ELSE (SELECT count(*) FROM (
			SELECT a.datname, a.backend_xid FROM pg_stat_activity a
			UNION ALL SELECT p.database, p.transaction FROM pg_prepared_xacts p) open (name, xact)
		WHERE open.name = d.name AND age(open.xact) >= age(d.overlay_xact::xid)) END FROM ledger.database d WHERE d.id = $1`
	return pg.One[int](ctx, x.db, query, d.ID)
}
