package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/burial"
	"github.com/pgherd/pgherd/agent/rounds"
)

// buryStatements bury a role, and enter it among the dead ones.
func buryStatements(role string) []string {
	statements, dead := burial.Statements(role)
	return append(statements,
		fmt.Sprintf("INSERT INTO ledger.dead_role (name, oid) SELECT rolname, oid FROM pg_roles WHERE rolname = %s", quote(dead)))
}

const (
	// deadPause is between two passes over the dead roles, and deadBreath between two rounds of a pass.
	deadPause, deadBreath = 5 * time.Second, 100 * time.Millisecond
	// deadRound is how many roles a round tries. Each may have to wait for others' transactions.
	deadRound = 20
	deadWait  = "SET LOCAL lock_timeout = '10ms'"
)

// deadRole is one that there is something to do about.
type deadRole struct {
	name   string
	oid    uint32
	rights bool
}

// SweepDead takes from dead roles the rights that they still have, and drops those that nothing refers to any more, until ctx
// ends. It reads them from the ledger, so it continues a predecessor's work. It goes by their names, from round to round, so that
// no number of roles that cannot be dropped keeps it from the others.
func (x *Executor) SweepDead(ctx context.Context) {
	last := ""
	rounds.Run(ctx, x.log, x.buried, "dead roles are not dropped", func(ctx context.Context) (time.Duration, error) {
		if last == "" {
			if err := x.adoptDead(ctx); err != nil {
				return deadPause, err
			}
		}
		roles, err := x.deadRoles(ctx, last)
		for _, r := range roles {
			err = errors.Join(err, x.dropDead(ctx, r))
		}
		if last = ""; len(roles) < deadRound {
			return deadPause, err
		}
		last = roles[len(roles)-1].name
		return deadBreath, err
	})
}

// adoptDead enters the logins of backups that were buried.
func (x *Executor) adoptDead(ctx context.Context) error {
	_, err := x.db.ExecContext(ctx, `INSERT INTO ledger.dead_role (name, oid) SELECT r.rolname, r.oid FROM pg_roles r
		WHERE starts_with(r.rolname, 'pgh_dead_') AND shobj_description(r.oid, 'pg_authid') = $1 || r.rolname
		ON CONFLICT DO NOTHING`, burial.Mark)
	return err
}

// deadRoles returns the next ones that have rights, or that nothing is seen to refer to.
func (x *Executor) deadRoles(ctx context.Context, after string) (roles []deadRole, err error) {
	const query = `SELECT name, oid, rights FROM (
			SELECT d.name, d.oid, ` + burial.Rights + ` AS rights
			FROM ledger.dead_role d JOIN pg_roles r ON r.oid = d.oid AND r.rolname = d.name WHERE d.name > $1) dead
		WHERE rights OR NOT EXISTS (
			SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = dead.oid)
		ORDER BY name LIMIT $2`
	rows, err := x.db.QueryContext(ctx, query, after, deadRound)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r deadRole
		if err := rows.Scan(&r.name, &r.oid, &r.rights); err != nil {
			return nil, err
		}
		roles = append(roles, r)
	}
	return roles, rows.Err()
}

// dropDead strips a dead role, and then tries to drop it.
func (x *Executor) dropDead(ctx context.Context, r deadRole) error {
	if r.rights {
		if err := burial.Strip(ctx, x.db, r.oid); err != nil {
			return err
		}
	}
	dropped := atomically(ctx, x.db, deadWait, "DROP ROLE "+ident(r.name),
		"DELETE FROM ledger.dead_role WHERE name = "+quote(r.name))
	if isKept(dropped) {
		return nil
	}
	return dropped
}

// wakeBurial wakes SweepDead after a burial: usually nothing refers to all but one of the buried roles.
func (x *Executor) wakeBurial() { rounds.Wake(x.buried) }
